"""./dev's installing and .ci/run's closing line, with stand-ins for Debian's tools that write down how they were called."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = "# group: core\ncmake\nninja-build\n# group: lint\nclang-16\n# group: fuzz\nclang-16\nllvm-16\n"


class Dev(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="flyball_dev_")
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "tools").mkdir()
        (self.root / "tools/packages.txt").write_text(PACKAGES)
        shutil.copy(ROOT / "dev", self.root / "dev")
        self.bin = self.root / "bin"
        self.bin.mkdir()
        for tool in ("bash", "env", "awk", "sed", "sort", "comm", "cat", "dirname", "nproc"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.program("apt-get", 'echo "$*" >>"$LOG"')

    def program(self, name, text):
        (self.bin / name).write_text(f"#!/bin/bash\n{text}\n")
        (self.bin / name).chmod(0o755)

    def deps(self, *groups, installed=(), user=0, sudo=False):
        """(exit status, stderr, how apt-get was called) of `./dev deps GROUPS` on a machine with these packages."""
        self.program("id", f"echo {user}")
        lines = "; ".join(f'[ "$p" = {name} ] && echo "installed {name}"' for name in installed) or "true"
        self.program("dpkg-query", f'for p in "$@"; do {lines}; done; exit 1')
        if sudo:
            self.program("sudo", 'echo "sudo" >>"$LOG"; exec "$@"')
        log = self.root / "log"
        environment = {"PATH": str(self.bin), "LOG": str(log)}
        run = subprocess.run([self.root / "dev", "deps", *groups], env=environment, capture_output=True, text=True, cwd=os.sep)
        return run.returncode, run.stderr, log.read_text().splitlines() if log.exists() else []

    def test_nothing_missing_calls_nothing(self):
        status, errors, calls = self.deps("core", installed=("cmake", "ninja-build"), user=1000)
        self.assertEqual((status, errors, calls), (0, "", []))

    def test_root_installs_what_is_missing_and_removes_nothing(self):
        status, _, calls = self.deps("core", "lint", installed=("cmake",))
        self.assertEqual((status, len(calls)), (0, 2), calls)
        self.assertTrue(calls[0].endswith(" update"), calls)
        self.assertIn("--no-remove --no-install-recommends -y install clang-16 ninja-build", calls[1])

    def test_package_of_two_groups_is_asked_for_once(self):
        _, _, calls = self.deps("fuzz", "lint")
        self.assertTrue(calls[1].endswith(" install clang-16 llvm-16"), calls)

    def test_user_goes_through_sudo(self):
        status, _, calls = self.deps("core", user=1000, sudo=True)
        self.assertEqual((status, calls.count("sudo"), len(calls)), (0, 2, 4))

    def test_user_without_sudo_is_told_what_to_install(self):
        status, errors, calls = self.deps("core", user=1000)
        self.assertEqual((status, calls), (1, []))
        self.assertIn("needs root or sudo", errors)
        self.assertIn("cmake ninja-build", errors)

    def test_failed_installation_fails_and_a_failed_update_alone_does_not(self):
        self.program("apt-get", 'echo "$*" >>"$LOG"; case "$*" in *update) exit 100;; esac')
        self.assertEqual(self.deps("core")[0], 0)
        self.program("apt-get", 'case "$*" in *install*) exit 100;; esac')
        status, errors, _ = self.deps("core")
        self.assertEqual(status, 1)
        self.assertIn("could not install: cmake ninja-build", errors)


class Ci(unittest.TestCase):
    def closing(self, lint="true", test="true", asan="true", junit='<testsuite><testcase name="a" status="run"/></testsuite>'):
        """(exit status, last line) of .ci/run where the steps of ./dev are these commands."""
        with tempfile.TemporaryDirectory(prefix="flyball_ci_") as folder:
            root = pathlib.Path(folder)
            for name in (".ci/run", "tools/ctest_sum.py"):
                (root / name).parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, root / name)
            steps = "".join(f"{name}) {text} ;;\n" for name, text in (("lint", lint), ("test", test), ("asan", asan)))
            (root / "dev").write_text(f"#!/bin/bash\nmkdir -p build/release build/asan\ncase $1 in\n{steps}esac\n")
            (root / "dev").chmod(0o755)
            (root / "junit").write_text(junit)
            run = subprocess.run([root / ".ci/run"], capture_output=True, text=True, cwd=os.sep)
            return run.returncode, run.stdout.splitlines()[-1]

    def test_sums_all_runs(self):
        run = "cp junit build/{}/ctest.xml"
        closing = self.closing(test=run.format("release"), asan=run.format("asan"))
        self.assertEqual(closing, (0, "2 passed, 0 failed, 0 skipped"))

    def test_failed_test_and_step_without_results_count_once_each(self):
        failed = '<testsuite><testcase name="a" status="fail"><failure message=""/></testcase></testsuite>'
        closing = self.closing(test="cp junit build/release/ctest.xml; exit 8", asan="exit 1", junit=failed)
        self.assertEqual(closing, (1, "0 passed, 2 failed, 0 skipped"))

    def test_failed_lint_fails(self):
        run = "cp junit build/{}/ctest.xml"
        closing = self.closing(lint="exit 1", test=run.format("release"), asan=run.format("asan"))
        self.assertEqual(closing, (1, "2 passed, 1 failed, 0 skipped"))

    def test_nothing_that_ran_fails(self):
        self.assertEqual(self.closing(), (1, "0 passed, 2 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
