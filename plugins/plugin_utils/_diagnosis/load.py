# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rule files: the collection's own folder and the user's, read once and kept until one of them changes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import yaml

from ...module_utils._model import HygieneError
from .schema import Rule, parse_rules, unique

BUILT_IN = Path(__file__).parent / "rules"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_rules(folders: Iterable[str | Path] = ()) -> tuple[Rule, ...]:
    """The collection's rules and those of further folders (their *.yml and *.yaml files), in order of id.

    :raises HygieneError: for a folder that is not there, a file that is not YAML, a rule that breaks the schema, an id used twice.
    """
    files = [path for folder in (BUILT_IN, *map(Path, folders)) for path in _files(folder)]
    return _parse(tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files))


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise HygieneError(
            f"The rules folder {folder} is not a directory",
            "Its rules would be missing without a word",
            "Correct the path (`rules_dirs`, `gpunode_rules_dirs`), or leave it out",
        )
    return sorted(path for path in folder.iterdir() if path.suffix in (".yml", ".yaml") and path.is_file())


@lru_cache(maxsize=8)
def _parse(files: tuple[tuple[str, int, int], ...]) -> tuple[Rule, ...]:
    """Time and size are part of the key, so that an edited file is read again."""
    return unique(rule for path, _time, _size in files for rule in _read(path))


def _read(path: str) -> list[Rule]:
    try:
        document = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - the loader is a safe one
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise HygieneError(
            f"The rule file {path} cannot be read: {' '.join(str(error).split())}",
            "Its rules would be missing without a word",
            "Correct the file, or move it out of the folder",
        ) from error
    return parse_rules(document, path)
