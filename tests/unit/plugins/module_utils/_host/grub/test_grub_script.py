# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.script import Command, If, Loop, ScriptError, parse
from hypothesis import given, settings
from hypothesis import strategies as st


def words(text: str) -> list[str]:
    (command,) = parse(text)
    assert isinstance(command, Command)
    return [word.shown for word in command.words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo a b", ["echo", "a", "b"]),
        ("echo 'a b' c", ["echo", "a b", "c"]),
        (r"echo 'it'\''s'", ["echo", "it's"]),
        (r'echo "a \"b\" \$c \\ \n"', ["echo", r'a "b" $c \ \n']),
        ("echo a#b # a comment", ["echo", "a#b"]),
        ("echo $a ${b}c \"$d\"", ["echo", "${a}", "${b}c", "${d}"]),
        ("echo '$a'", ["echo", "$a"]),
        ("echo a\\\n b", ["echo", "a", "b"]),
        (r"echo a\ b", ["echo", "a b"]),
        ("echo \"\" ''", ["echo", "", ""]),
    ],
)
def test_words_and_quoting_are_those_of_grub(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_braces_and_semicolons_end_words_unless_quoted() -> None:
    first, second = parse("menuentry 'a;{}' {linux /x;}\necho b")
    assert isinstance(first, Command)
    assert first.words[1].literal == "a;{}"
    assert first.block is not None
    (inner,) = first.block.statements
    assert isinstance(inner, Command)
    assert [word.literal for word in inner.words] == ["linux", "/x"]
    assert isinstance(second, Command)
    assert second.name == "echo"


def test_offsets_give_the_text_back() -> None:
    text = "if a; then\n  linux  /x  'y z'\nfi"
    (statement,) = parse(text)
    assert isinstance(statement, If)
    assert text[statement.start : statement.end] == text
    command = statement.branches[0][1][0]
    assert text[command.start : command.end] == "linux  /x  'y z'"


def test_elif_else_and_loops_are_read() -> None:
    conditional, loop = parse("if a; then b; elif c; then d; else e; fi; for x in 1 2; do echo $x; done")
    assert isinstance(conditional, If)
    assert len(conditional.branches) == 2
    assert len(conditional.otherwise) == 1
    assert isinstance(loop, Loop)
    assert [word.literal for word in loop.words] == ["1", "2"]


@pytest.mark.parametrize(
    "text",
    ["menuentry 'a' {", "}", "if a; then b", "echo 'a", 'echo "a', "fi", "if a; then b; fi }", "a && b", "a | b", "function f"],
)
def test_what_grub_script_check_refuses_is_refused(text: str) -> None:
    with pytest.raises(ScriptError):
        parse(text)


@settings(derandomize=True, max_examples=300)
@given(st.text(alphabet="ab '\"\\$#{};\n&|<>=[]", max_size=40))
def test_any_text_is_a_script_or_a_script_error(text: str) -> None:
    try:
        statements = parse(text)
    except ScriptError:
        return
    assert all(0 <= statement.start <= statement.end <= len(text) for statement in statements)
