# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What GRUB has in hand when grub.cfg has run: the menu, `default`, `timeout`, `superusers`.

The script is run here with the variables of the environment block. What a host cannot know (does a font load, is a module there) is unknown: both
branches are followed, what they set differently becomes unknown (None), and what they add to the menu is marked as not certain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Callable, Mapping, Optional, Sequence

from .script import Block, Command, Function, If, Loop, Part, ScriptError, Statement, Word, parse

PREFIX = "/boot/grub"
GRUB_CFG = f"{PREFIX}/grub.cfg"
CUSTOM_CFG = f"{PREFIX}/custom.cfg"
GRUBENV = f"{PREFIX}/grubenv"

# grub-core/normal/main.c, features[].
_FEATURES = (
    "chainloader_bpb",
    "ntldr",
    "platform_search_hint",
    "default_font_path",
    "all_video_module",
    "menuentry_id",
    "menuentry_options",
    "200_final",
    "nativedisk_cmd",
    "timeout_style",
)
_EXPORTED = ("prefix", "root", "config_directory", "config_file", "grub_platform", "grub_cpu", "lang", "locale_dir", "color_normal", "color_highlight")
_WITH_ARGUMENT = ("--class", "--users", "--hotkey", "--source", "--id")
_SHORT_ARGUMENT = {"-c": "--class", "-u": "--users", "-k": "--hotkey", "-s": "--source"}
# Commands that bring entries or variables from somewhere else.
_OPAQUE = ("configfile", "eval", "extract_entries_source", "extract_entries_configfile", "legacy_source", "syslinux_source", "blscfg")
_MAX_COMMANDS = 200_000
_MAX_CALLS = 20
Truth = Optional[bool]


@dataclass(frozen=True)
class Entry:
    """One line of the menu.

    :param users: None when anybody may boot it; otherwise the users who may, beside the superusers.
    :param certain: whether the entry is there for sure.
    :param body: what it runs; `source` is the text that the body's offsets refer to, `origin` that text's file.
    :param children: the submenu's entries; empty for a menuentry.
    """

    title: str
    id: str
    submenu: bool
    users: Optional[str]
    certain: bool
    body: Block
    source: str = field(repr=False)
    origin: str = GRUB_CFG
    children: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Menu:
    """The top level.

    :param default: the value of `default`; None when unset, `default_known` False when it cannot be told.
    :param default_origin: the file that set `default` last.
    :param timeout: seconds; None when there is none (GRUB then waits for ever), `timeout_known` False when it cannot be told.
    :param read: the files that the script sources.
    :param problems: what was met that cannot be followed; `invalid` names sourced files with syntax errors.
    """

    entries: tuple[Entry, ...]
    default: Optional[str]
    default_known: bool
    default_origin: str
    timeout: Optional[int]
    timeout_known: bool
    superusers: str
    read: tuple[str, ...]
    problems: tuple[str, ...]
    invalid: tuple[str, ...]


def run(text: str, files: Mapping[str, Optional[str]], grubenv: Mapping[str, str], platform: str = "pc") -> Menu:
    """The menu of a grub.cfg.

    :param files: the text of the files that it may source or test, by path; None for one that is known not to be there.
    :param grubenv: the variables that `load_env` brings.
    :param platform: `grub_platform`: pc, efi, ...
    :raises ScriptError: when GRUB would report a syntax error.
    """
    machine = _Machine(files, grubenv, platform)
    machine.origin, machine.source = GRUB_CFG, text
    machine.statements(parse(text))
    timeout, timeout_known = _timeout(machine)
    return Menu(
        entries=tuple(machine.entries),
        default=machine.variables.get("default"),
        default_known=machine.variables.get("default", "") is not None,
        default_origin=machine.default_origin,
        timeout=timeout,
        timeout_known=timeout_known,
        superusers=machine.variables.get("superusers") or "",
        read=tuple(machine.read),
        problems=tuple(dict.fromkeys(machine.problems)),
        invalid=tuple(dict.fromkeys(machine.invalid)),
    )


def _timeout(machine: _Machine) -> tuple[Optional[int], bool]:
    """grub_menu_get_timeout: no variable and no number both mean no timeout."""
    value = machine.variables.get("timeout", "")
    if value is None:
        return None, False
    found = re.match(r"\s*(-?[0-9]+)", value)
    return (int(found.group(1)), True) if found else (None, True)


class _Machine:
    """The state of a running script; a variable that is absent is unset, one that is None is unknown."""

    def __init__(self, files: Mapping[str, Optional[str]], grubenv: Mapping[str, str], platform: str) -> None:
        self.files = files
        self.grubenv = grubenv
        self.variables: dict[str, Optional[str]] = {f"feature_{name}": "y" for name in _FEATURES}
        self.variables.update(prefix=PREFIX, config_directory=PREFIX, config_file=GRUB_CFG, grub_platform=platform, root=None, grub_cpu=None, lang=None)
        self.exported = {f"feature_{name}" for name in _FEATURES} | set(_EXPORTED)
        self.functions: dict[str, Block] = {}
        self.entries: list[Entry] = []
        self.read: list[str] = []
        self.problems: list[str] = []
        self.invalid: list[str] = []
        self.default_origin = GRUB_CFG
        self.origin = GRUB_CFG
        self.source = ""
        self.certain = True
        self.commands = 0
        self.calls = 0

    def statements(self, statements: Sequence[Statement]) -> Truth:
        """Run them; the truth of the last one."""
        status: Truth = True
        for statement in statements:
            status = self.statement(statement)
            self.variables["?"] = None if status is None else ("0" if status else "1")
        return status

    def statement(self, statement: Statement) -> Truth:
        if isinstance(statement, If):
            return self.conditional(statement, 0)
        if isinstance(statement, Loop):
            return self.loop(statement)
        if isinstance(statement, Function):
            self.functions[statement.function] = statement.body
            return True
        return self.command(statement)

    def conditional(self, statement: If, branch: int) -> Truth:
        if branch == len(statement.branches):
            return self.statements(statement.otherwise)
        condition, body = statement.branches[branch]
        truth = self.statements(condition)
        if truth is not None:
            return self.statements(body) if truth else self.conditional(statement, branch + 1)
        return self.either(lambda: self.statements(body), lambda: self.conditional(statement, branch + 1))

    def either(self, one: Callable[[], Truth], other: Callable[[], Truth]) -> Truth:
        """Follow both ways from here, and know afterwards only what both agree on."""
        outer, self.certain = self.certain, False
        start = dict(self.variables)
        first = one()
        after_first, self.variables = self.variables, start
        second = other()
        for name in {*after_first, *self.variables}:
            if after_first.get(name, "") != self.variables.get(name, ""):
                self.variables[name] = None
        self.certain = outer
        return first if first == second else None

    def loop(self, statement: Loop) -> Truth:
        if statement.variable:
            words = [value for word in statement.words for value in self.expand(word)]
            for value in words:
                self.assign(statement.variable.shown, value)
                self.statements(statement.body)
            return True
        truth = self.statements(statement.condition)
        self.either(lambda: self.statements(statement.body), lambda: truth)
        return None

    def command(self, command: Command) -> Truth:
        self.commands += 1
        if self.commands > _MAX_COMMANDS:
            raise ScriptError(f"more than {_MAX_COMMANDS} commands run")
        arguments = [value for word in command.words for value in self.expand(word)]
        if not arguments:
            return True
        name = arguments[0]
        if name is None:
            return None
        if name in ("menuentry", "submenu"):
            return self.add_entry(name == "submenu", arguments[1:], command)
        if name in ("[", "test"):
            closing = name == "[" and arguments[-1:] == ["]"]
            return self.test(arguments[1:-1] if closing else arguments[1:])
        if name in self.functions:
            return self.call(name)
        assignment = re.match(r"([A-Za-z_][A-Za-z0-9_]*|[0-9]+)=(.*)", name, re.DOTALL)
        if assignment:
            return self.assign(assignment.group(1), assignment.group(2))
        return self.builtin(name, command, arguments[1:])

    def builtin(self, name: str, command: Command, arguments: list[Optional[str]]) -> Truth:
        if name == "set":
            return self.set(command, arguments)
        if name == "unset":
            for argument in filter(None, arguments):
                self.variables.pop(argument, None)
            return True
        if name == "export":
            self.exported.update(argument for argument in arguments if argument)
            return True
        if name == "load_env":
            return self.load_env(arguments)
        if name in ("source", "."):
            return self.run_file(arguments[0] if arguments else None)
        if name in ("true", "echo", "save_env"):
            return True
        if name == "false":
            return False
        if name in _OPAQUE:
            self.problems.append(f"{self.origin} uses `{name}`, which cannot be followed")
        self.forget(name, arguments)
        return None

    def set(self, command: Command, arguments: list[Optional[str]]) -> Truth:
        for word, argument in zip(command.words[1:], arguments):
            text = word.shown if argument is None else argument
            name, sign, value = text.partition("=")
            if sign:
                self.assign(name, None if argument is None else value)
        return True

    def assign(self, name: str, value: Optional[str]) -> Truth:
        if name == "default":
            self.default_origin = self.origin
        if value == "" and name != "default":
            self.variables.pop(name, None)
        else:
            self.variables[name] = value
        return True

    def forget(self, name: str, arguments: list[Optional[str]]) -> None:
        """A command that may set a variable makes it unknown (search, probe, regexp, smbios, cat, hwmatch, read)."""
        for place, argument in enumerate(arguments):
            if argument and argument.startswith("--set="):
                self.variables[argument[len("--set=") :]] = None
            elif argument in ("--set", "-s") and place + 1 < len(arguments):
                following = arguments[place + 1]
                if following and following.isidentifier():
                    self.variables[following] = None
        if name == "hwmatch":
            self.variables["match"] = None
        if name == "read" and arguments and arguments[0]:
            self.variables[arguments[0]] = None

    def load_env(self, arguments: list[Optional[str]]) -> Truth:
        if any(argument is None or argument.startswith(("-f", "--file")) for argument in arguments):
            for argument in arguments:
                if argument and not argument.startswith("-"):
                    self.variables[argument] = None
            return None
        names = [argument for argument in arguments if argument and not argument.startswith("-")]
        for name, value in self.grubenv.items():
            if not names or name in names:
                self.assign(name, value)
        return True

    def run_file(self, path: Optional[str]) -> Truth:
        if path is None or path not in self.files:
            self.problems.append(f"{self.origin} sources {path or 'a file'}, which is not known here")
            return None
        self.read.append(path)
        text = self.files[path]
        if text is None:
            return False
        try:
            statements = parse(text)
        except ScriptError as error:
            # Seen with 2.06: a file with a syntax error defines nothing, and the script that sources it goes on.
            self.invalid.append(f"{path} is no valid GRUB script ({error})")
            return False
        outer = (self.origin, self.source)
        self.origin, self.source = path, text
        status = self.called(statements)
        self.origin, self.source = outer
        return status

    def call(self, name: str) -> Truth:
        return self.called(self.functions[name].statements)

    def called(self, statements: Sequence[Statement]) -> Truth:
        self.calls += 1
        if self.calls > _MAX_CALLS:
            raise ScriptError(f"more than {_MAX_CALLS} calls inside one another")
        status = self.statements(statements)
        self.calls -= 1
        return status

    def add_entry(self, submenu: bool, arguments: list[Optional[str]], command: Command) -> Truth:
        if command.block is None:
            return False
        title: Optional[str] = None
        options: dict[str, str] = {}
        unrestricted = False
        pending = list(arguments)
        known = all(argument is not None for argument in arguments)
        while pending:
            argument = pending.pop(0) or ""
            option, sign, value = argument.partition("=")
            option = _SHORT_ARGUMENT.get(option, option)
            if option in _WITH_ARGUMENT:
                options[option] = value if sign else (pending.pop(0) if pending else "") or ""
            elif argument == "--unrestricted":
                unrestricted = True
            elif title is None and not argument.startswith("-"):
                title = argument
        users = options.get("--users", None if unrestricted else "")
        entry = Entry(
            title=title or "",
            id=options.get("--id", title or ""),
            submenu=submenu,
            users=users,
            certain=self.certain and known,
            body=command.block,
            source=self.source,
            origin=self.origin,
            children=self.open(command.block) if submenu else (),
        )
        self.entries.append(entry)
        return True

    def open(self, block: Block) -> tuple[Entry, ...]:
        """A submenu's entries: its body runs in a context of its own, with the exported variables."""
        outer = (self.variables, self.entries, self.default_origin, self.certain)
        self.variables = {name: value for name, value in self.variables.items() if name in self.exported}
        self.entries, self.certain = [], True
        self.called(block.statements)
        children = tuple(self.entries)
        self.variables, self.entries, self.default_origin, self.certain = outer
        return children

    def expand(self, word: Word) -> list[Optional[str]]:
        """A word's values: none for an unquoted empty variable, several for one with blanks."""
        values: list[str] = [""]
        exists = False
        for part in word.parts:
            if not part.variable:
                values[-1] += part.text
                exists = exists or part.quoted or bool(part.text)
                continue
            text = self.value(part)
            if text is None:
                return [None]
            if part.quoted:
                values[-1] += text
                exists = True
                continue
            pieces = text.split()
            if pieces:
                values[-1] += pieces[0]
                values.extend(pieces[1:])
                exists = True
        return list(values) if exists else []

    def value(self, part: Part) -> Optional[str]:
        if part.text in ("@", "*", "#") or part.text.isdigit():
            return None if self.calls else ""
        return self.variables.get(part.text, "")

    def test(self, arguments: list[Optional[str]]) -> Truth:
        """`test` with -a binding tighter than -o, as in grub-core/commands/test.c."""
        result: Truth = False
        for alternative in _split(arguments, "-o"):
            every: Truth = True
            for primary in _split(alternative, "-a"):
                every = _and(every, self.primary(primary))
            result = _or(result, every)
        return result

    def primary(self, arguments: list[Optional[str]]) -> Truth:
        if arguments and arguments[0] == "!":
            inner = self.primary(arguments[1:])
            return None if inner is None else not inner
        if not arguments:
            return False
        if any(argument is None for argument in arguments):
            return None
        words = [argument or "" for argument in arguments]
        if len(words) == 1:
            return words[0] != ""
        if len(words) == 2:
            return self.unary(words[0], words[1])
        return _binary(words[0], words[1], words[2]) if len(words) == 3 else None

    def unary(self, sign: str, text: str) -> Truth:
        if sign == "-n":
            return text != ""
        if sign == "-z":
            return text == ""
        if sign in ("-e", "-f", "-s") and text in self.files:
            content = self.files[text]
            return content is not None and (sign != "-s" or content != "")
        return None


def _binary(left: str, sign: str, right: str) -> Truth:
    if sign in ("=", "=="):
        return left == right
    if sign == "!=":
        return left != right
    numbers = {"-eq": (0,), "-ne": (-1, 1), "-lt": (-1,), "-le": (-1, 0), "-gt": (1,), "-ge": (0, 1)}
    if sign in numbers and left.lstrip("-").isdigit() and right.lstrip("-").isdigit():
        return (int(left) > int(right)) - (int(left) < int(right)) in numbers[sign]
    return None


def _split(arguments: list[Optional[str]], sign: str) -> list[list[Optional[str]]]:
    groups: list[list[Optional[str]]] = [[]]
    for argument in arguments:
        if argument == sign:
            groups.append([])
        else:
            groups[-1].append(argument)
    return groups


def _and(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: Truth, right: Truth) -> Truth:
    if left or right:
        return True
    return None if left is None or right is None else False
