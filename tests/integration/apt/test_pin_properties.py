# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever kernels are installed: with the hold set, the real apt moves none of them; without it, it does; and it can be given back exactly.

The oracle is the real `apt-get -s` on a database whose selections the real dpkg set; nothing of the module's own simulation is used to judge.
`GPUNODE_EXAMPLES` sets the number of generated worlds (default 40); they are the same in every run.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt import holds, plan, simulate
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.closure import closure
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.evidence import selections
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.status import read_status
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from apt_world import AWS, AZURE, BASE, BOOKWORM, GENERIC, GENERIC_NVIDIA, HWE, NVIDIA, TRIXIE_CLOUD, Deb, Flavour, World
from hypothesis import event, given, settings
from hypothesis import strategies as st

UBUNTU_ABIS = [(f"6.8.0-{abi}", f"6.8.0-{abi}.{abi}") for abi in (110, 112, 117, 124, 130)]
BOOKWORM_ABIS = [(f"6.1.0-{abi}", f"6.1.{100 + abi}-1") for abi in (28, 35, 47, 50, 57)]
TRIXIE_ABIS = [(f"6.12.{patch}+deb13", f"6.12.{patch}-1") for patch in (41, 57, 63, 73, 117)]
LINES: list[tuple[Flavour, list[tuple[str, str]]]] = [
    *((flavour, UBUNTU_ABIS) for flavour in (GENERIC, HWE, AZURE, AWS, NVIDIA, GENERIC_NVIDIA)), (BOOKWORM, BOOKWORM_ABIS), (TRIXIE_CLOUD, TRIXIE_ABIS),
]
pytestmark = pytest.mark.quick
EXAMPLES = int(os.environ.get("GPUNODE_EXAMPLES", "40"))
HELLO = Deb("hello", "2", section="misc")


@dataclass(frozen=True)
class Universe:
    """What is installed, what the archive offers, and which releases shall be pinned."""

    installed: tuple[Deb, ...]
    archive: tuple[Deb, ...]
    automatic: tuple[str, ...]
    held_before: tuple[str, ...]
    pinned: tuple[str, ...]
    brings_new_kernel: bool


def _closed(debs: list[Deb], wanted: set[str]) -> set[str]:
    """The names with everything that they depend on among `debs` (every alternative that exists there)."""
    by_name = {deb.name: deb for deb in debs}
    reached: set[str] = set()
    pending = sorted(wanted)
    while pending:
        name = pending.pop()
        if name in by_name and name not in reached:
            reached.add(name)
            pending += [word.split()[0] for word in by_name[name].depends.replace("|", ",").split(",") if word.strip()]
    return reached


@st.composite
def universes(draw: st.DrawFn) -> Universe:
    """One or two lines of kernels, with parts and metapackages left out at will, and an archive that has newer ones and rebuilds."""
    installed: dict[str, Deb] = {}
    archive: dict[tuple[str, str], Deb] = {}
    releases: list[str] = []
    brings = False
    for flavour, abis in draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=2, unique_by=lambda line: line[0].release(line[1][0][0]))):
        newest = draw(st.integers(1, 3))
        present = sorted(draw(st.sets(st.integers(0, newest), min_size=1)) | {newest})
        kernels = {deb.name: deb for index in present for deb in flavour.kernel(*abis[index])}
        metas = {deb.name: deb for deb in flavour.metas(*abis[newest])}
        images = {f"linux-image-{flavour.release(abis[index][0])}" for index in present}
        optional = draw(st.sets(st.sampled_from(sorted({*kernels, *metas}))))
        chosen = _closed([*kernels.values(), *metas.values()], images | optional)
        installed.update({name: deb for name, deb in {**kernels, **metas}.items() if name in chosen})
        releases += [flavour.release(abis[index][0]) for index in present]
        for deb in (*kernels.values(), *flavour.kernel(*abis[newest + 1]), *flavour.metas(*abis[newest + 1])):
            archive[(deb.name, deb.version)] = deb
        if draw(st.booleans()):  # a rebuild under the same release
            for deb in flavour.kernel(abis[present[0]][0], f"{abis[present[0]][1]}.1"):
                archive[(deb.name, deb.version)] = deb
        brings = brings or bool(set(metas) & chosen)
    names = sorted(installed)
    return Universe(
        installed=tuple(installed.values()),
        archive=(*archive.values(), HELLO),
        automatic=tuple(sorted(draw(st.sets(st.sampled_from(names))))),
        held_before=tuple(sorted(draw(st.sets(st.sampled_from(names), max_size=2)))),
        pinned=tuple(draw(st.lists(st.sampled_from(releases), min_size=1, max_size=2, unique=True))),
        brings_new_kernel=brings,
    )


def _world(folder: str, universe: Universe) -> World:
    world = World(Path(folder) / "root")
    world.install(universe.installed, universe.automatic, dict.fromkeys(universe.held_before, "hold"))
    world.publish(universe.archive)
    return world


def _of_kernel(moves: dict[str, str]) -> set[str]:
    return {name for name in moves if name.startswith("linux-") and name != "linux-base"}


@settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
@given(universes())
def test_with_the_hold_set_apt_moves_no_kernel_and_without_it_does(universe: Universe) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = _world(folder, universe)
        root = str(world.root)
        original = world.selections()
        control = world.simulate("dist-upgrade")
        if universe.brings_new_kernel and not universe.held_before:
            assert any(action == "Inst" and name not in world.installed for name, action in control.items()), "the control must bring a new kernel"
        packages = read_status(root)
        wanted = closure(packages, universe.pinned)
        event(f"hold set of {len(wanted.names)}")

        simulate.prove(packages, wanted, root)
        claims = plan.plan_present(wanted.names, selections(packages))
        holds.write_selections({claim.where: claim.after for claim in claims if claim.before != "hold"}, root)

        upgrade = world.simulate("dist-upgrade")
        assert upgrade["hello"] == "Inst", "other packages still move"
        moved = _of_kernel(upgrade)
        assert {name for name in moved if upgrade[name] == "Remv"} == set(), "no kernel package goes"
        assert {name for name in moved if name not in world.installed} == set(), "no kernel package comes"
        others = {name for name in world.installed if name.startswith("linux-")} - set(wanted.names)
        assert moved <= others, "nothing that is pinned changes"
        assert not any(name.endswith(release) for name in moved for release in universe.pinned)
        removed = set(world.simulate("autoremove"))
        assert removed & set(wanted.names) == set()

        back = plan.plan_absent([("r", claims)], ["r"], selections(read_status(root)))
        holds.write_selections({change.where: change.after for change in back.changes}, root)
        assert world.selections() == original


@settings(max_examples=max(EXAMPLES // 4, 5), derandomize=True, deadline=None)
@given(universes(), st.data())
def test_a_package_outside_the_kernel_that_pulls_one_is_refused_by_name(universe: Universe, data: st.DataObject) -> None:
    installed = {deb.name for deb in universe.installed}
    fresh = [deb for deb in universe.archive if deb.name.startswith("linux-image-") and deb.files and deb.name not in installed]
    puller = replace(HELLO, version="3", depends=data.draw(st.sampled_from(fresh)).name)
    with tempfile.TemporaryDirectory() as folder:
        world = _world(folder, universe)
        world.publish((*universe.archive, puller))
        packages = read_status(str(world.root))
        with pytest.raises(HygieneError) as refusal:
            simulate.prove(packages, closure(packages, universe.pinned), str(world.root))
        assert puller.depends in {violation["package"] for violation in refusal.value.facts["violations"]}
        assert "apt-mark hold hello" in refusal.value.remedy
        assert world.selections() == {deb.name: "hold" if deb.name in universe.held_before else "install" for deb in (*BASE, *universe.installed)}


@pytest.mark.parametrize(("flavour", "abis"), LINES, ids=[line[0].track for line in LINES])
def test_of_four_kernels_autoremove_keeps_the_pinned_one_and_its_fallback(tmp_path: Path, flavour: Flavour, abis: list[tuple[str, str]]) -> None:
    world = World(tmp_path / "root")
    metas = flavour.metas(*abis[3])
    kernels = {deb.name: deb for abi in abis[:4] for deb in flavour.kernel(*abi)}
    world.install([*kernels.values(), *metas], automatic=kernels)
    world.publish([*kernels.values(), *metas])
    pinned, fallback = flavour.release(abis[0][0]), flavour.release(abis[1][0])
    image = {index: f"linux-image-{flavour.release(abis[index][0])}" for index in range(4)}
    assert {image[0], image[1]} <= set(world.simulate("autoremove")), "the control removes both"
    packages = read_status(str(world.root))
    wanted = closure(packages, [pinned, fallback])
    holds.write_selections(dict.fromkeys(wanted.names, "hold"), str(world.root))
    removed = set(world.simulate("autoremove"))
    assert removed & set(wanted.names) == set()
    assert image[0] in wanted.names and image[1] in wanted.names
