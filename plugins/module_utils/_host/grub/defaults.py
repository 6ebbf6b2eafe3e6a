# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings that update-grub would use: /etc/default/grub and its drop-ins, sourced as grub-mkconfig sources them.

They are shell code, so a shell is asked: in an empty folder of its own (an unquoted `GRUB_DEFAULT=1>2` writes a file `2`), without input, for a bounded time.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence

from ..files import read_text
from ..run import Completed, run

MAIN = "/etc/default/grub"
FOLDER = "/etc/default/grub.d"
DROP_IN = f"{FOLDER}/zz-gpunode-hygiene.cfg"
NAMES = ("GRUB_DEFAULT", "GRUB_SAVEDEFAULT", "GRUB_DISABLE_OS_PROBER")
_TIMEOUT = 20.0
_PRINT = "printf '%s\\0' " + " ".join(f'"${{{name}-}}"' for name in NAMES) + " >&3"
# grub-mkconfig runs under `set -e`, and presets os-prober off.
_SCRIPT = f"""set -e
exec 3>&1 >/dev/null
GRUB_DISABLE_OS_PROBER=true
for hygiene_file in "$@"; do
  printf 'reading\\0' >&3
  . "$hygiene_file"
  {_PRINT}
done
"""


@dataclass(frozen=True)
class Settings:
    """The effective settings.

    :param values: by name; a name that is not set has an empty value.
    :param source: the file that decides GRUB_DEFAULT; None when none sets it.
    :param later: files behind our drop-in that set GRUB_DEFAULT too.
    :param problem: why update-grub would fail on them; None when it would not.
    """

    values: Mapping[str, str]
    source: Optional[str]
    later: tuple[str, ...]
    problem: Optional[str]

    @property
    def spec(self) -> str:
        """GRUB_DEFAULT as grub.cfg gets it: 0 when empty (00_header)."""
        return self.values.get("GRUB_DEFAULT", "") or "0"


def read(root: str = "/", instead: Optional[Mapping[str, Optional[str]]] = None) -> Settings:
    """The effective settings of a host.

    :param instead: texts to use in place of files, by path; None for a file that shall not count.
    :raises OSError: when a file exists but cannot be read.
    """
    texts: dict[str, Optional[str]] = {path: read_text(_inside(root, path)) for path in order(_names(_inside(root, FOLDER)))}
    texts.update(instead or {})
    there = {path: text for path, text in sorted(texts.items(), key=lambda item: (item[0] != MAIN, os.fsencode(item[0]))) if text is not None}
    with tempfile.TemporaryDirectory(prefix="gpunode-hygiene-") as folder:
        sources = [_source(root, path, text, folder) for path, text in there.items()]
        completed = run(["/bin/sh", "-c", f"cd {folder}\n{_SCRIPT}", "sh", *sources], _TIMEOUT, env={"HOME": folder})
    return settle(list(there), there, completed)


def order(names: Sequence[str]) -> list[str]:
    """The files in the order in which they are sourced: the main file, then the drop-ins in byte order (a shell glob in the C locale).

    Only names that end with .cfg count, and a glob leaves hidden ones out.
    """
    drop_ins = sorted((name for name in names if name.endswith(".cfg") and not name.startswith(".")), key=os.fsencode)
    return [MAIN, *(f"{FOLDER}/{name}" for name in drop_ins)]


def settle(paths: Sequence[str], texts: Mapping[str, str], completed: Completed) -> Settings:
    """The settings from what the shell printed after each file."""
    steps = _steps(completed.out)
    complete = [step for step in steps if len(step) == len(NAMES)]
    source, previous = None, ""
    for path, step in zip(paths, complete):
        if step[0] != previous or assigns(texts[path]):
            source, previous = path, step[0]
    values = dict(zip(NAMES, complete[-1])) if complete else {}
    later = tuple(path for path in paths if path.startswith(FOLDER) and os.fsencode(path) > os.fsencode(DROP_IN) and assigns(texts[path]))
    problem = None
    if not completed.ok or len(complete) != len(paths):
        culprit = paths[min(len(complete), len(paths) - 1)] if paths else MAIN
        said = completed.err.strip().splitlines()
        problem = f"{culprit} cannot be sourced ({said[-1] if said else completed.summary})"
    return Settings(values, source, later, problem)


def assigns(text: str) -> bool:
    """Whether shell code sets GRUB_DEFAULT, as far as its lines tell."""
    return bool(re.search(r"^(?:[^#\n]*[\s;&|({])?GRUB_DEFAULT(?:=|:?=)", text, re.MULTILINE) or re.search(r"\$\{GRUB_DEFAULT:?=", text))


def _source(root: str, path: str, text: str, folder: str) -> str:
    """The file to source: the host's own when its text is the wanted one, a private copy otherwise."""
    inside = _inside(root, path)
    if read_text(inside) == text:
        return inside
    copy = os.path.join(folder, os.path.basename(path))
    with open(copy, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)
    return copy


def _steps(out: str) -> list[list[str]]:
    steps: list[list[str]] = []
    for piece in out.split("\0")[:-1]:
        if piece == "reading" and (not steps or len(steps[-1]) == len(NAMES)):
            steps.append([])
        elif steps:
            steps[-1].append(piece)
    return steps


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _inside(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
