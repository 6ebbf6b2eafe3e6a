# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JMESPath behind two functions: compile once, and a value or unknown."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...module_utils._model import HygieneError

try:
    import jmespath
    from jmespath.exceptions import JMESPathError
except ImportError:
    jmespath = None
    JMESPathError = Exception


class PathError(Exception):
    """The text is not a JMESPath."""


@lru_cache(maxsize=4096)
def compile_path(path: str) -> Any:
    """The compiled expression.

    :raises PathError: with JMESPath's own words on one line.
    :raises HygieneError: when the library is not there.
    """
    if jmespath is None:
        raise HygieneError(
            "The Python library jmespath is not installed for the Python that runs Ansible",
            "The diagnosis rules select their evidence with it",
            "Install it there: `python3 -m pip install jmespath`",
        )
    try:
        return jmespath.compile(path)
    except JMESPathError as error:
        raise PathError(" ".join(str(error).split())) from None


def look_up(path: str, evidence: Any) -> Any:
    """What the path selects; None when nothing is there or a function in it got a value that it cannot take."""
    try:
        return compile_path(path).search(evidence)
    except (JMESPathError, TypeError, ValueError, AttributeError):
        return None
