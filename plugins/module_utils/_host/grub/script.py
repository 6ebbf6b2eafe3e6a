# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The language of grub.cfg: text in, statements out.

Words, quoting and reserved words are those of GRUB's own lexer and grammar (grub-core/script/yylex.l and parser.y): `{`, `}`, `;`, `|`, `&`, `<` and
`>` end a word wherever they are not quoted, a comment starts only where a word could, and a block may be an argument of any command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Union

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[?@*#])\}|([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[?@*#]))")
_META = "{}|&;<>"
_RUN = {False: re.compile(r"[^{}|&;<> \t\r\n'\"\\$]+"), True: re.compile(r"[^\"\\$]+")}
_MAX_DEPTH = 60


class ScriptError(ValueError):
    """Text that is no GRUB script; the message names the line."""


@dataclass(frozen=True)
class Part:
    """A piece of a word: literal text, or the name of a variable."""

    text: str
    variable: bool = False
    quoted: bool = False


@dataclass(frozen=True)
class Word:
    """One word; `start` and `end` are offsets in the script's text."""

    parts: tuple[Part, ...]
    start: int
    end: int

    @property
    def literal(self) -> Optional[str]:
        """The word's text when no variable is in it."""
        return None if any(part.variable for part in self.parts) else "".join(part.text for part in self.parts)

    @property
    def shown(self) -> str:
        """The word's text with variables left as `${name}`."""
        return "".join(f"${{{part.text}}}" if part.variable else part.text for part in self.parts)


@dataclass(frozen=True)
class Block:
    """The statements between braces."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Command:
    """A command with its arguments; the block is the braced argument, when there is one."""

    words: tuple[Word, ...]
    block: Optional[Block]
    start: int
    end: int

    @property
    def name(self) -> Optional[str]:
        """The command's name when it is literal."""
        return self.words[0].literal if self.words else None


@dataclass(frozen=True)
class If:
    """Branches in order, each a condition and a body; the last body is that of `else`."""

    branches: tuple[tuple[tuple[Statement, ...], tuple[Statement, ...]], ...]
    otherwise: tuple[Statement, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Loop:
    """`while` and `until` (with a condition) and `for` (with a variable and words)."""

    condition: tuple[Statement, ...]
    variable: Optional[Word]
    words: tuple[Word, ...]
    body: tuple[Statement, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Function:
    """A function's definition."""

    function: str
    body: Block
    start: int
    end: int


Statement = Union[Command, If, Loop, Function]


@dataclass(frozen=True)
class _Token:
    kind: str  # "word", "end" (newline or semicolon) or a metacharacter
    start: int
    end: int
    word: Optional[Word] = None


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a script.

    :raises ScriptError: where GRUB would report a syntax error.
    """
    return _Parser(text).whole()


def _tokens(text: str) -> list[_Token]:
    tokens = []
    place = 0
    while place < len(text):
        sign = text[place]
        if sign in " \t\r":
            place += 1
        elif text.startswith("\\\n", place):
            place += 2
        elif sign == "#":
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
        elif sign in "\n;":
            tokens.append(_Token("end", place, place + 1))
            place += 1
        elif sign in _META:
            tokens.append(_Token(sign, place, place + 1))
            place += 1
        else:
            word = _word(text, place)
            tokens.append(_Token("word", word.start, word.end, word))
            place = word.end
    return tokens


def _word(text: str, start: int) -> Word:
    parts: list[Part] = []
    place = start
    while place < len(text):
        sign = text[place]
        if sign in " \t\r\n" or sign in _META:
            break
        if sign == "'":
            place = _single_quoted(text, place, parts)
        elif sign == '"' or text.startswith('$"', place):
            place = _double_quoted(text, place + (sign == "$"), parts)
        elif sign == "\\":
            if text[place + 1 : place + 2] != "\n":
                parts.append(Part(text[place + 1 : place + 2], quoted=True))
            place += 2
        else:
            place = _plain(text, place, parts, quoted=False)
    return Word(tuple(parts), start, min(place, len(text)))


def _single_quoted(text: str, place: int, parts: list[Part]) -> int:
    end = text.find("'", place + 1)
    if end < 0:
        raise ScriptError(f"line {_line(text, place)}: a single quote is not closed")
    parts.append(Part(text[place + 1 : end], quoted=True))
    return end + 1


def _double_quoted(text: str, opening: int, parts: list[Part]) -> int:
    parts.append(Part("", quoted=True))
    place = opening + 1
    while place < len(text) and text[place] != '"':
        following = text[place + 1 : place + 2]
        if text[place] == "\\" and following in ("\\", '"', "$", "\n"):
            if following != "\n":
                parts.append(Part(following, quoted=True))
            place += 2
        else:
            place = _plain(text, place, parts, quoted=True)
    if place >= len(text):
        raise ScriptError(f"line {_line(text, opening)}: a double quote is not closed")
    return place + 1


def _plain(text: str, place: int, parts: list[Part], quoted: bool) -> int:
    found = _VARIABLE.match(text, place)
    if found:
        parts.append(Part(found.group(1) or found.group(2), variable=True, quoted=quoted))
        return found.end()
    run = _RUN[quoted].match(text, place)
    end = run.end() if run else place + 1
    parts.append(Part(text[place:end], quoted=quoted))
    return end


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0

    def whole(self) -> tuple[Statement, ...]:
        statements = self.statements(())
        if self.at < len(self.tokens):
            raise self.unexpected()
        return statements

    def statements(self, stops: tuple[str, ...]) -> tuple[Statement, ...]:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ScriptError(f"more than {_MAX_DEPTH} levels of nesting")
        found: list[Statement] = []
        while True:
            while self.at < len(self.tokens) and self.tokens[self.at].kind == "end":
                self.at += 1
            if self.at >= len(self.tokens) or self.tokens[self.at].kind == "}" or self.reserved() in stops:
                break
            found.append(self.statement())
        self.depth -= 1
        return tuple(found)

    def statement(self) -> Statement:
        start = self.tokens[self.at].start
        kind = self.reserved()
        if kind == "if":
            return self.conditional(start)
        if kind in ("while", "until", "for"):
            return self.loop(start, kind)
        if kind == "function":
            return self.function(start)
        if kind in ("then", "elif", "else", "fi", "do", "done"):
            raise self.unexpected()
        return self.command(start)

    def command(self, start: int) -> Command:
        words: list[Word] = []
        block = None
        end = start
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind == "word" and token.word:
                words.append(token.word)
                self.at += 1
                end = token.end
            elif token.kind == "{" and words:
                block = self.block()
                end = self.tokens[self.at - 1].end
            elif token.kind in ("end", "}") and words:
                break
            else:
                raise self.unexpected()
        return Command(tuple(words), block, start, end)

    def block(self) -> Block:
        self.expect("{")
        statements = self.statements(())
        self.expect("}")
        return Block(statements)

    def conditional(self, start: int) -> If:
        branches = []
        otherwise: tuple[Statement, ...] = ()
        kind = "if"
        while kind in ("if", "elif"):
            self.at += 1
            condition = self.statements(("then",))
            self.word("then")
            branches.append((condition, self.statements(("elif", "else", "fi"))))
            kind = self.reserved()
        if kind == "else":
            self.at += 1
            otherwise = self.statements(("fi",))
        self.word("fi")
        return If(tuple(branches), otherwise, start, self.tokens[self.at - 1].end)

    def loop(self, start: int, kind: str) -> Loop:
        self.at += 1
        condition: tuple[Statement, ...] = ()
        variable = None
        words: tuple[Word, ...] = ()
        if kind == "for":
            variable = self.any_word()
            self.word("in")
            words = self.command(start).words if self.at < len(self.tokens) and self.tokens[self.at].kind == "word" else ()
            self.statements(("do",))
        else:
            condition = self.statements(("do",))
        self.word("do")
        body = self.statements(("done",))
        self.word("done")
        return Loop(condition, variable, words, body, start, self.tokens[self.at - 1].end)

    def function(self, start: int) -> Function:
        self.at += 1
        name = self.any_word().literal
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "end":
            self.at += 1
        body = self.block()
        return Function(name or "", body, start, self.tokens[self.at - 1].end)

    def any_word(self) -> Word:
        if self.at < len(self.tokens):
            word = self.tokens[self.at].word
            if word:
                self.at += 1
                return word
        raise self.unexpected()

    def word(self, wanted: str) -> None:
        if self.reserved() != wanted:
            raise self.unexpected()
        self.at += 1

    def expect(self, kind: str) -> None:
        if self.at >= len(self.tokens) or self.tokens[self.at].kind != kind:
            raise self.unexpected()
        self.at += 1

    def reserved(self) -> str:
        """The word at this place as it stands, when it is not quoted; reserved words are never quoted."""
        if self.at >= len(self.tokens):
            return ""
        word = self.tokens[self.at].word
        if word is None or any(part.quoted or part.variable for part in word.parts):
            return ""
        return word.literal or ""

    def unexpected(self) -> ScriptError:
        if self.at >= len(self.tokens):
            return ScriptError("the text ends where more is needed")
        token = self.tokens[self.at]
        return ScriptError(f"line {_line(self.text, token.start)}: {self.text[token.start : token.end]!r} is not expected here")
