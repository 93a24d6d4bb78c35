"""How each character of a shell script stands: bare, in quotes, in a document, in a comment. Pure.

It is for writing a variable in place of some characters, so that the shell puts its value there.
"""

from __future__ import annotations

import re

BARE, SINGLE, DOUBLE, HERE, LITERAL, COMMENT = "bare", "'", '"', "here", "literal", "comment"
_DOCUMENT = re.compile(r"<<(-?)[ \t]*(?:(['\"])([^'\"\n]+)\2|\\?(\w+))")


def standing(text: str) -> list[str]:
    """Quoting of each character; a quote counts as what is around it. LITERAL: nothing is filled in there."""
    found: list[str] = []
    stack, at, documents = [BARE], 0, list[tuple[str, str, bool]]()
    while at < len(text):
        one, state = text[at], stack[-1]
        if state != SINGLE and one == "\\":
            found += [state, state]
            at += 2
            continue
        if state == BARE and _begins_comment(text, at):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            found += [COMMENT] * (end - at)
            at = end
            continue
        if state == BARE and text.startswith("<<<", at):
            found += [BARE] * 3
            at += 3
            continue
        if state == BARE and (named := _DOCUMENT.match(text, at)):
            plain = not named[2] and "\\" not in named[0]
            documents.append((named[3] or named[4], named[1], plain))
            found += [BARE] * len(named[0])
            at = named.end()
            continue
        if one == "\n" and state == BARE and documents:
            found.append(BARE)
            at += 1
            for word, dash, plain in documents:
                end = _end_of(text, at, word, dash)
                found += [HERE if plain else LITERAL] * (end - at)
                at = end
            documents = []
            continue
        found.append(_moved(stack, text, at))
        at += 1
    return found[: len(text)]


def opened(text: str) -> str:
    """The same script, with documents open to variables (`<<'END'` as `<<END`) that mean the same then."""
    stands, made, at = standing(text), list[str](), 0
    for match in _DOCUMENT.finditer(text):
        word, begins = match[3] or match[4], text.find("\n", match.end()) + 1
        line = text[text.rfind("\n", 0, match.start()) + 1 : begins or len(text)]
        body = text[begins : _end_of(text, begins, word, match[1])]
        alone = stands[match.start()] == BARE and len(_DOCUMENT.findall(line)) == 1
        if alone and begins and re.fullmatch(r"\w+", word) and not re.search(r"[$`\\]", body):
            made += [text[at : match.start()], f"<<{match[1]}{word}"]
            at = match.end()
    return "".join([*made, text[at:]])


def in_place(name: str, stands: str) -> str:
    """A variable, written where characters stood that way; "" where the shell fills nothing in."""
    made = {BARE: f'"${name}"', DOUBLE: f"${{{name}}}", HERE: f"${{{name}}}", SINGLE: f"'\"${name}\"'"}
    return made.get(stands, "")


def _moved(stack: list[str], text: str, at: int) -> str:
    """How the character at hand stands; the stack is as it is after it."""
    one, state = text[at], stack[-1]
    if state == SINGLE:
        if one == "'":
            stack.pop()
            return stack[-1]
        return SINGLE
    if one == '"' and state == DOUBLE:
        stack.pop()
        return stack[-1]
    if one == "(" and (state == BARE or text[at - 1 : at] == "$"):
        stack.append(BARE)
    elif one == ")" and state == BARE and len(stack) > 1:
        stack.pop()
    elif one in "'\"" and state == BARE:
        stack.append(one)
    return state


def _begins_comment(text: str, at: int) -> bool:
    return text[at] == "#" and (at == 0 or text[at - 1] in " \t\n;&|(")


def _end_of(text: str, at: int, word: str, dash: str) -> int:
    """Where a document ends, before the line that ends it."""
    indent = r"\t*" if dash else ""
    last = re.compile(rf"^{indent}{re.escape(word)}$", re.MULTILINE).search(text, at)
    return last.start() if last else len(text)
