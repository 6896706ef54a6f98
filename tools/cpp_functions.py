"""Finds the functions of a C++ file by its braces: enough to measure their length without a compiler."""
import re

_TOKEN = re.compile(
    r'R"(?P<delimiter>[^()\\\s]{0,16})\((?s:.*?)\)(?P=delimiter)"'  # raw string
    r'|//[^\n]*|/\*(?s:.*?)\*/'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"  # not the separator of 1'000
)
_PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
_SIGNATURE_END = re.compile(r"(\)|\b(const|noexcept|override|final|try|mutable)|&)\s*$")
_TRAILING_RETURN = re.compile(r"\)[^;{}]*->[^;{}]*$")
_CONSTRUCTOR_LIST = re.compile(r"\)[^;{}?]*(?<!:):(?!:)")


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def strip(text):
    """The text with comments, literals and preprocessor lines blanked; line numbers stay."""
    return _PREPROCESSOR.sub(_blank, _TOKEN.sub(_blank, text))


def _opens_function(head):
    """Whether the text before an opening brace, since the last statement, is a function's."""
    if "(" not in head:
        return False
    bare = re.sub(r"<[^<>]*>", "", head)
    if _SCOPE.search(bare) and not re.search(r"\)", bare):
        return False
    if _CONSTRUCTOR_LIST.search(head):
        return bool(re.search(r"[)}]\s*$", head))  # `: a_{1}` goes on, `: a_(1) {` opens the body
    return bool(_SIGNATURE_END.search(head) or _TRAILING_RETURN.search(head))


def functions(text):
    """Yields (name, first line, lines of the body with its braces) for each outermost function body."""
    code = strip(text)
    head_start, function_start, function_head = 0, None, ""
    stack = []  # one of "scope", "function", "initializer" for each open brace
    for match in re.finditer(r"[{};]", code):
        at, character = match.start(), match.group(0)
        inside = "function" in stack
        if character == "{":
            head = code[head_start:at]
            if inside:
                stack.append("inner")
            elif _opens_function(head):
                stack.append("function")
                function_start, function_head = at, head
            elif "(" in head or "=" in head:
                stack.append("initializer")
            else:
                stack.append("scope")
            if stack[-1] == "scope":
                head_start = at + 1
        elif character == "}":
            kind = stack.pop() if stack else "scope"
            if kind == "function":
                first = code.count("\n", 0, function_start) + 1
                name = re.search(r"([~\w:]+)\s*\(", function_head)
                yield name.group(1) if name else "?", first, code.count("\n", function_start, at) + 1
            if kind in ("function", "scope") and "function" not in stack:
                head_start = at + 1
        elif not inside and "initializer" not in stack:
            head_start = at + 1
