# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-test compares documentation and argument spec for modules only; an action's are compared here."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible_collections.gpunode.hygiene.plugins.action import gpu_cluster_info as info_action
from ansible_collections.gpunode.hygiene.plugins.action import node_drain as drain_action
from ansible_collections.gpunode.hygiene.plugins.doc_fragments.kubernetes import ModuleDocFragment
from ansible_collections.gpunode.hygiene.plugins.modules import gpu_cluster_info, node_drain

COMPARED = ("type", "elements", "required", "default", "choices", "aliases")


def shape(options: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: {key: option[key] for key in COMPARED if option.get(key) not in (None, False)} for name, option in options.items()}


@pytest.mark.parametrize(("module", "action"), [(node_drain, drain_action), (gpu_cluster_info, info_action)])
def test_options_are_documented_as_they_are(module: Any, action: Any) -> None:
    own = yaml.safe_load(module.DOCUMENTATION)["options"]
    shared = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
    assert shape({**own, **shared}) == shape(action.ActionModule.ARGUMENTS)


def test_secrets_are_marked() -> None:
    arguments = drain_action.ActionModule.ARGUMENTS
    assert {name for name, option in arguments.items() if option.get("no_log")} == {"kubeconfig", "api_key", "password"}


@pytest.mark.parametrize("run", ["../x", "a b", "x" * 65])
def test_a_run_id_that_cannot_name_a_folder_is_refused(run: str) -> None:
    with pytest.raises(drain_action.HygieneError, match="A run id names folders"):
        drain_action._run(run)
    assert drain_action._run("20261001T120000Z-0a1b2c") == "20261001T120000Z-0a1b2c"


def test_the_pod_of_the_run_is_known_by_its_service_account(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_action, "SERVICE_ACCOUNT_NAMESPACE", tmp_path / "namespace")
    inside = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOSTNAME": "automation-job-7"}
    assert drain_action._own_pod(inside) is None
    (tmp_path / "namespace").write_text("awx\n", "utf-8")
    assert drain_action._own_pod(inside) == ("awx", "automation-job-7")
    assert drain_action._own_pod({"HOSTNAME": "laptop"}) is None
