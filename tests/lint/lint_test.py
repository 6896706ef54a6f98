"""The lints on tiny trees: each rule refuses a tree that breaks it, and the tree that keeps all of them passes."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import cpp_functions  # noqa: E402
import lint_bars  # noqa: E402

ROOMS = "# floors\n0 base :\n1 core : base\n2 guard : base core\n2 curve : base core\n5 fake : base core [fakegpu]\n"
GOOD = {
    "doc/rooms.txt": ROOMS,
    "doc/heavy_headers.txt": "# pattern : files\nnlohmann/* : src/base/json.cc\n",
    "src/base/README.md": "# base\n",
    "src/base/json.cc": "#include <nlohmann/json.hpp>\n",
    "src/core/README.md": "# core\n",
    "src/core/types.h": '#include "base/json.h"\n#include "flyball/channel.h"\n',
    "src/guard/README.md": "# guard\n",
    "src/guard/guard.cc": '#include "guard/guard.h"\n#include "core/types.h"\n',
    "fakegpu/README.md": "# fakegpu\n",
    "fakegpu/main.cc": '#include "core/types.h"\n',
}


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="flyball_lint_")
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def lint(self, tool, files):
        """(exit status, what it printed) of a lint on a tree of these files."""
        self.write(files)
        run = subprocess.run([sys.executable, "-B", TOOLS / tool, self.root], capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        return run.returncode, run.stdout

    def refuses(self, tool, files, words):
        status, output = self.lint(tool, files)
        self.assertEqual(status, 1, output)
        self.assertIn(words, output)
        self.assertIn(": 1 findings", output)

    def accepts(self, tool, files):
        status, output = self.lint(tool, files)
        self.assertEqual(status, 0, output)


class Rooms(Tree):
    def test_good_tree_passes(self):
        self.accepts("lint_rooms.py", GOOD)

    def test_lint_fails_when_a_room_includes_a_forbidden_one(self):
        rooms = {"doc/rooms.txt": ROOMS.replace("2 guard : base core", "2 guard : base")}
        self.refuses("lint_rooms.py", GOOD | rooms, "src/guard/guard.cc:2: includes \"core/types.h\": the row of guard")

    def test_room_of_the_same_floor_is_refused(self):
        change = {"src/guard/guard.cc": '#include "curve/fit.h"\n'}
        self.refuses("lint_rooms.py", GOOD | change, "room guard is on floor 2 and curve on 2; only lower floors")

    def test_room_of_a_higher_floor_is_refused(self):
        change = {"src/core/types.h": '\n#include "guard/guard.h"\n'}
        self.refuses("lint_rooms.py", GOOD | change, "src/core/types.h:2: includes")

    def test_folder_outside_src_is_checked_too(self):
        change = {"fakegpu/main.cc": '#include "guard/guard.h"\n'}
        self.refuses("lint_rooms.py", GOOD | change, "the row of fake in doc/rooms.txt does not name guard")

    def test_unknown_room_is_refused(self):
        self.refuses("lint_rooms.py", GOOD | {"src/guard/x.cc": '#include "nowhere/x.h"\n'}, "nowhere is no room")

    def test_include_without_its_room_is_refused(self):
        self.refuses("lint_rooms.py", GOOD | {"src/guard/x.cc": '#include "x.h"\n'}, 'write the room, "guard/x.h"')

    def test_folder_without_a_row_is_refused(self):
        self.refuses("lint_rooms.py", GOOD | {"src/extra/x.cc": "int x;\n"}, "src/extra: no row in doc/rooms.txt")

    def test_row_that_names_its_own_floor_is_refused(self):
        rows = {"doc/rooms.txt": ROOMS.replace("2 curve : base core", "2 curve : base core guard")}
        self.refuses("lint_rooms.py", GOOD | rows, "curve (floor 2) names guard of floor 2")

    def test_row_that_names_an_unknown_room_is_refused(self):
        rows = {"doc/rooms.txt": ROOMS.replace("1 core : base", "1 core : base more")}
        self.refuses("lint_rooms.py", GOOD | rows, "core names more, which has no row above")

    def test_missing_readme_is_refused(self):
        files = {name: text for name, text in GOOD.items() if name != "src/guard/README.md"}
        self.refuses("lint_rooms.py", files, "src/guard/README.md: missing")

    def test_long_readme_is_refused(self):
        self.refuses("lint_rooms.py", GOOD | {"src/guard/README.md": "x\n" * 31}, "31 lines, at most 30")

    def test_long_file_is_refused_and_the_longest_allowed_passes(self):
        self.accepts("lint_rooms.py", GOOD | {"src/guard/x.cc": "int x();\n" * 600})
        self.refuses("lint_rooms.py", GOOD | {"src/guard/x.cc": "int x();\n" * 601}, "601 lines, at most 600")

    def test_long_function_is_refused_and_the_longest_allowed_passes(self):
        body = "int f(int x) {\n" + "  ++x;\n" * 68
        self.accepts("lint_rooms.py", GOOD | {"src/guard/x.cc": body + "}\n"})
        self.refuses("lint_rooms.py", GOOD | {"src/guard/x.cc": body + "  ++x;\n}\n"}, "x.cc:1: function f has 71 lines")

    def test_heavy_header_is_refused_in_headers_and_unnamed_sources(self):
        include = "#include <nlohmann/json_fwd.hpp>\n"
        self.refuses("lint_rooms.py", GOOD | {"src/guard/x.cc": include}, "src/guard/x.cc: includes nlohmann/*")
        self.refuses("lint_rooms.py", {"src/guard/x.cc": "", "src/base/x.h": include}, "src/base/x.h: includes nlohmann/*")


class Functions(unittest.TestCase):
    def found(self, text):
        return [(name, length) for name, _, length in cpp_functions.functions(text)]

    def test_braces_that_are_no_functions_are_not_counted(self):
        self.assertEqual(self.found("namespace a {\nstruct B : C<int(int)> {\n  int x{1};\n};\n}\n"), [])
        self.assertEqual(self.found("const std::map<int, int> m = {\n{1, f(2)},\n};\nenum class E { a, b };\n"), [])
        self.assertEqual(self.found("// void f() {\n#define F(x) \\\n  { x }\nauto s = R\"x(void g() {)x\";\n"), [])

    def test_functions_of_all_shapes_are_found(self):
        self.assertEqual(self.found("namespace a {\nint f() {\n if (x) {\n }\n}\n}"), [("f", 4)])
        self.assertEqual(self.found("A::A(int x) : a_{x}, b_(1) {\n}\n"), [("A::A", 2)])
        self.assertEqual(self.found("A::A(int x) : a_{x}, b_{1} {\n}\nint g() {}"), [("A::A", 2), ("g", 1)])
        self.assertEqual(self.found("auto f(int x) -> std::vector<int> {\n}\n"), [("f", 2)])
        self.assertEqual(self.found("struct A { int f() const override {\n} };"), [("f", 2)])
        self.assertEqual(self.found("TEST(Suite, Name) {\n auto f = [] {\n };\n}\n"), [("TEST", 4)])
        self.assertEqual(self.found("int f(char c = '{') {\n return 1'000 + '}';\n}\nint g() {\n}"), [("f", 3), ("g", 2)])

    def test_class_inside_a_template_is_a_scope(self):
        self.assertEqual(self.found("template <class T>\nT f(T t) {\n return t;\n}\n"), [("f", 3)])


class Bars(Tree):
    def rows(self, **changes):
        rows = {identifier: 'about = "x"\nstatus = "open"' for identifier in lint_bars.IDS} | changes
        return {"tests/bars.toml": "".join(f"[{name}]\n{text}\n" for name, text in rows.items() if text)}

    def delivered(self, test='tests = ["src/a_test.cc:Suite.Name"]', command='command = "flyball analyze energy"'):
        return self.rows(S1=f'about = "x"\nstatus = "delivered"\n{test}\n{command}')

    def setUp(self):
        super().setUp()
        self.write({"src/a_test.cc": "TEST_F(Suite,\n       Name) {}\n", "a_test.py": "class T:\n  def test_x(self): 0\n"})

    def test_all_open_and_a_delivered_row_with_its_test_pass(self):
        self.accepts("lint_bars.py", self.rows())
        self.accepts("lint_bars.py", self.delivered())
        self.accepts("lint_bars.py", self.delivered('tests = ["a_test.py:T.test_x"]'))

    def test_delivered_without_a_test_is_refused(self):
        self.refuses("lint_bars.py", self.delivered(test=""), "S1: delivered without a test")
        self.refuses("lint_bars.py", self.delivered(test="tests = []"), "S1: delivered without a test")

    def test_delivered_without_a_command_is_refused(self):
        self.refuses("lint_bars.py", self.delivered(command=""), "S1: delivered without the command")
        self.refuses("lint_bars.py", self.delivered(command='command = "make it"'), "command starts with 'make'")

    def test_test_that_does_not_exist_is_refused(self):
        self.refuses("lint_bars.py", self.delivered('tests = ["src/b_test.cc:Suite.Name"]'), "does not exist")
        self.refuses("lint_bars.py", self.delivered('tests = ["src/a_test.cc:Suite.Other"]'), "has no test Suite.Other")
        self.refuses("lint_bars.py", self.delivered('tests = ["src/a_test.cc:Suite.Nam"]'), "has no test Suite.Nam")
        self.refuses("lint_bars.py", self.delivered('tests = ["src/a_test.cc"]'), "names no test in the file")

    def test_missing_and_unknown_rows_are_refused(self):
        self.refuses("lint_bars.py", self.rows(H7=None), "H7 is missing")
        self.refuses("lint_bars.py", self.rows(H8='about = "x"\nstatus = "open"'), "H8 is no mission row or bar")

    def test_unknown_status_and_key_are_refused(self):
        self.refuses("lint_bars.py", self.rows(A1='about = "x"\nstatus = "done"'), "status 'done'")
        self.refuses("lint_bars.py", self.rows(A1='about = "x"\nstatus = "open"\ntest = 1'), "unknown key test")


class Words(Tree):
    def test_good_files_pass(self):
        self.accepts("lint_words.py", {"a.cc": "// network/work, a todo list, mkstemp XXXXXX\n", "b.sh": "echo hi\n"})

    def test_words_that_stay_out_are_refused(self):
        for line in ("/" + "work/x", '"/' + 'root"', "/" + "home/somebody/x", "// TO" + "DO later", "FIX" + "ME", "deb.debian" + ".org"):
            with self.subTest(line):
                self.refuses("lint_words.py", {"src/a.cc": line + "\n"}, "src/a.cc:1: ")

    def test_scripts_that_do_not_parse_are_refused(self):
        self.refuses("lint_words.py", {"a": "#!/bin/bash\nif true; then\n"}, "a: bash -n")
        self.refuses("lint_words.py", {"a": "", "b.py": "def f(:\n"}, "b.py:1: ")

    def test_long_scripts_and_functions_are_refused(self):
        self.refuses("lint_words.py", {"a.py": "x = 1\n" * 601}, "a.py: more than 600 lines")
        self.refuses("lint_words.py", {"a.py": "def f():\n" + "  x = 1\n" * 70}, "a.py:1: function f has more than 70")
        self.accepts("lint_words.py", {"a.py": "def f():\n" + "  x = 1\n" * 69})


class Clang(Tree):
    """lint_clang.py in a tree of its own, with stand-ins that refuse files with the word BAD and write down their calls."""

    FILES = {
        ".clang-tidy": "Checks: a\n",
        "src/a/a.h": "int a();\n",
        "src/a/a.cc": '#include "a/a.h"\n',
        "src/a/a_test.cc": "int test;\n",
        "src/b/b.cc": "int b;\n",
    }

    def setUp(self):
        super().setUp()
        self.write(self.FILES)
        for tool in ("lint_clang.py", "lint_common.py"):
            self.write({f"tools/{tool}": (TOOLS / tool).read_text()})
        files = [str(self.root / name) for name in self.FILES if name.endswith(".cc")]
        entries = [{"file": name, "directory": str(self.root), "command": "c++ -c " + name} for name in files]
        self.write({"build/release/compile_commands.json": json.dumps(entries)})
        tidy = 'f=${!#}; [ "$1" = --version ] && echo 16 && exit; echo "$f" >>log; ! grep -H -n BAD "$f"'
        layout = "for f; do [ ! -f \"$f\" ] || ! grep -q UGLY $f || { echo \"$f:1:2: error: code\" >&2; exit 1; }; done"
        self.write({"bin/clang-tidy-16": f"#!/bin/bash\n{tidy}\n", "bin/clang-format-16": f"#!/bin/bash\n{layout}\n"})
        for name in ("clang-tidy-16", "clang-format-16"):
            (self.root / "bin" / name).chmod(0o755)

    def run_it(self):
        """(exit status, output, files that clang-tidy looked at)."""
        log = self.root / "log"
        log.unlink(missing_ok=True)
        environment = os.environ | {"PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        command = [sys.executable, "-B", self.root / "tools/lint_clang.py", "-j", "1"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        looked = log.read_text().split() if log.exists() else []
        return run.returncode, run.stdout, sorted(pathlib.Path(name).name for name in looked)

    def test_looks_again_only_at_what_changed(self):
        self.assertEqual(self.run_it(), (0, "clang: 0 findings, 2 files checked\n", ["a.cc", "b.cc"]))
        self.assertEqual(self.run_it()[2], [])
        self.write({"src/a/a.h": "int a(int);\n"})
        self.assertEqual(self.run_it()[2], ["a.cc"])
        self.write({".clang-tidy": "Checks: b\n"})
        self.assertEqual(self.run_it()[2], ["a.cc", "b.cc"])

    def test_finding_fails_and_is_not_forgotten(self):
        self.write({"src/b/b.cc": "BAD\n"})
        for _ in range(2):
            status, output, looked = self.run_it()
            self.assertEqual(status, 1)
            self.assertIn("src/b/b.cc:1:BAD", output)
            self.assertIn("b.cc", looked)

    def test_layout_fails(self):
        self.write({"src/a/a_test.cc": "UGLY\n"})
        status, output, _ = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("src/a/a_test.cc:1: not as clang-format-16 writes it", output)


class Sum(Tree):
    def total(self, *arguments):
        run = subprocess.run([sys.executable, "-B", TOOLS / "ctest_sum.py", *arguments], capture_output=True, text=True)
        return run.returncode, run.stdout.splitlines()

    def test_sums_runs_and_names_what_skipped_itself(self):
        case = '<testcase name="a_test" status="run"><system-out>[  SKIPPED ] S.N (0 ms)\n</system-out></testcase>'
        self.write({"1.xml": f"<testsuite>{case}</testsuite>", "2.xml": '<testsuite><testcase name="b" status="run"/></testsuite>'})
        status, lines = self.total(self.root / "1.xml", self.root / "2.xml")
        self.assertEqual((status, lines), (0, ["skipped inside a_test: S.N", "2 passed, 0 failed, 0 skipped"]))

    def test_failures_and_failed_steps_fail(self):
        self.write({"1.xml": '<testsuite><testcase name="b" status="fail"/><testcase name="c" status="notrun"/></testsuite>'})
        status, lines = self.total(self.root / "1.xml")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed, 1 skipped"))
        self.assertEqual(self.total("--also-failed", "1"), (1, ["0 passed, 1 failed, 0 skipped"]))

    def test_results_that_were_cut_off_fail(self):
        self.write({"1.xml": "<testsuite><testcase"})
        status, lines = self.total(self.root / "1.xml")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
