# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which part of the code may use what (docs/architecture.md), and what every source file says at its head and nowhere else."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "plugins"
PACKAGE = "ansible_collections.gpunode.hygiene.plugins"

# Readers, writers and clients. Whatever is not named here has to be pure: no files, programs, sockets, clocks or Ansible,
# and of these modules it may use the types and constants only.
SHELLS = {
    "module_utils": {
        "_host/answer", "_host/files", "_host/info", "_host/record", "_host/run", "_host/runs",
        "_host/apt/evidence", "_host/apt/holds", "_host/apt/lock", "_host/apt/simulate", "_host/apt/status",
        "_host/grub/defaults", "_host/grub/evidence", "_host/grub/host", "_host/grub/loader", "_host/grub/writer",
        "_host/kernel/build", "_host/kernel/dkms", "_host/kernel/installed", "_host/kernel/out_of_tree",
        "_host/system/identity", "_host/system/os_release", "_host/system/pause", "_host/system/space", "_host/system/units",
    },
    "plugin_utils": {
        "_cluster/action", "_cluster/client", "_cluster/maintain", "_cluster/options", "_cluster/process", "_cluster/progress",
        "_cluster/drain/loop", "_cluster/info/gather", "_cluster/info/source",
        "_diagnosis/load",
        "_registry/credentials", "_registry/lookup", "_registry/transport",
    },
}
ACTIONS = {path.stem for path in (PLUGINS / "action").glob("*.py")}  # their modules are documentation only
OUTSIDE = {"asyncio", "fcntl", "glob", "http", "os", "pathlib", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "tempfile", "threading", "time"}
PURE_OF_OS = re.compile(r"os\.(fsdecode|fsencode|sep|path\.(basename|commonpath|dirname|join|normpath|split|splitext))")  # texts in, texts out
OUTSIDE_CALLS = {"open", "print", "input"}
WITH_ANSIBLE = {"ansible", "yaml", "jinja2", "markupsafe", "packaging"}  # always there where Ansible is

SOURCES = (".py", ".pyi", ".yml", ".yaml", ".sh", ".go", ".c", ".h", ".toml", ".in")
NOT_OURS = {".git", ".hypothesis", "__pycache__", "node_modules", "requirements"}
HEAD = ("Copyright (c) 2026 gpunode.hygiene contributors", "SPDX-License-Identifier: GPL-3.0-or-later")
HEAD_FREE = {"changelogs/changelog.yaml"}  # written by antsibull-changelog
# A path of one machine, or where one network gets its packages.
OF_ONE_MACHINE = re.compile(r"(?<![\w.}])/work/|/tmp/venv|/root/\.(?:cache|pyenv|ansible)|GOPROXY=http|index-url\s*=|--index-url|/home/[a-z]+/")


@dataclass(frozen=True)
class Import:
    """One imported module by its full name. `guarded` means within a try, a function or TYPE_CHECKING."""

    name: str
    guarded: bool
    typing_only: bool

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]


def dotted(path: Path) -> str:
    return ".".join((PACKAGE, *path.relative_to(PLUGINS).with_suffix("").parts))


def imports(path: Path) -> Iterator[Import]:
    """All imports of a file; `from x import y` counts as `x.y` where y may be a module of this collection, else as `x`."""

    def walk(node: ast.AST, guarded: bool, typing_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = guarded or isinstance(child, (ast.Try, ast.FunctionDef, ast.AsyncFunctionDef))
            checking = typing_only or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, inside or checking, checking) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    base = ".".join(filter(None, (".".join(dotted(path).split(".")[: -child.level]), child.module)))
                for alias in child.names:
                    yield Import(f"{base}.{alias.name}" if base.startswith(PACKAGE) else base, inside or checking, checking)
            else:
                yield from walk(child, inside, checking)

    yield from walk(ast.parse(path.read_text("utf-8")), False, False)


def uses_os_for_texts_only(tree: ast.Module) -> bool:
    uses = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("os.")} - {"os.path"}
    return all(PURE_OF_OS.fullmatch(use) for use in uses)


def code(folder: str) -> list[Path]:
    return [path for path in sorted((PLUGINS / folder).rglob("*.py")) if path.name != "__init__.py"]


def named(path: Path) -> str:
    return path.relative_to(PLUGINS).as_posix()


def key(path: Path) -> tuple[str, str]:
    """("module_utils", "_host/run") and the like."""
    side, _slash, rest = named(path).removesuffix(".py").partition("/")
    return side, rest


def is_function(name: str) -> bool:
    """Whether an imported name is neither a type nor a constant, going by its letters."""
    return name.rpartition(".")[2].islower()


def is_shell(path: Path) -> bool:
    side, rest = key(path)
    return rest in SHELLS[side]


HOST_MODULES = [path for path in code("modules") if path.stem not in ACTIONS]
HOST = [*HOST_MODULES, *code("module_utils")]
CORE = [path for path in (*code("module_utils"), *code("plugin_utils")) if not is_shell(path)]


@pytest.mark.parametrize("path", HOST, ids=named)
def test_host_code_uses_the_standard_library_and_ansibles_basic_module_only(path: Path) -> None:
    allowed = sys.stdlib_module_names
    others = {found.name for found in imports(path) if found.top not in allowed and not found.name.startswith(f"{PACKAGE}.module_utils")}
    assert others <= {"ansible.module_utils.basic"}


@pytest.mark.parametrize("path", [*code("plugin_utils"), *code("action"), *code("filter")], ids=named)
def test_third_party_libraries_are_imported_under_a_guard(path: Path) -> None:
    at_hand = sys.stdlib_module_names | WITH_ANSIBLE | {"ansible_collections"}
    assert [found.name for found in imports(path) if found.top not in at_hand and not found.guarded] == []


@pytest.mark.parametrize("path", CORE, ids=named)
def test_the_core_neither_touches_the_outside_nor_knows_ansible(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    used = [found for found in imports(path) if not found.typing_only and not (found.name == "os" and uses_os_for_texts_only(tree))]
    outside = {found.name for found in used if found.top in OUTSIDE | {"ansible"} or found.name.startswith("urllib.request")}
    shells = {f"{PACKAGE}.{side}.{name.replace('/', '.')}" for side, names in SHELLS.items() for name in names}
    through_shells = {found.name for found in used if found.name in shells or (found.name.rpartition(".")[0] in shells and is_function(found.name))}
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert (outside, through_shells, calls & OUTSIDE_CALLS) == (set(), set(), set())


def test_every_shell_that_is_named_exists() -> None:
    named_here = {(side, name) for side, names in SHELLS.items() for name in names}
    assert named_here - {key(path) for side in SHELLS for path in code(side)} == set()


@pytest.mark.parametrize("path", [path for path in code("plugin_utils") if path.parts[len(PLUGINS.parts) + 1] != "_cluster"], ids=named)
def test_diagnosis_registry_and_report_do_not_need_a_cluster(path: Path) -> None:
    assert [found.name for found in imports(path) if found.name.startswith(f"{PACKAGE}.plugin_utils._cluster")] == []


def test_package_files_are_empty() -> None:
    assert [named(path) for path in PLUGINS.rglob("__init__.py") if path.read_bytes()] == []


def sources() -> list[Path]:
    found = []
    for folder, below, names in os.walk(ROOT):
        below[:] = sorted(name for name in below if name not in NOT_OURS and not (name.startswith(".") and name != ".ci"))
        found += [Path(folder) / name for name in names]
    return sorted(found)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_source(path: Path) -> bool:
    if relative(path) in HEAD_FREE:
        return False
    return path.suffix in SOURCES or (path.suffix == "" and path.read_bytes()[:2] == b"#!")


@pytest.mark.parametrize("path", [path for path in sources() if path.name != "__init__.py" and is_source(path)], ids=relative)
def test_a_source_file_names_its_owners_and_its_licence(path: Path) -> None:
    head = "\n".join(path.read_text("utf-8").splitlines()[:5])
    assert [line for line in HEAD if line not in head] == []


def test_no_file_names_a_path_of_one_machine_or_its_package_source() -> None:
    found = {}
    for path in sources():
        if path == Path(__file__).resolve():
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        hits = OF_ONE_MACHINE.findall(text)
        if hits:
            found[relative(path)] = hits
    assert found == {}
