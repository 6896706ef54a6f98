"""./dev's installing, with stand-ins for Debian's tools that write down how they were called."""
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


if __name__ == "__main__":
    unittest.main()
