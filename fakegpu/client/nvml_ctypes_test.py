"""The fake library under Python's ctypes, as pynvml binds it. Usage: nvml_ctypes_test.py FAKEGPU_PROGRAM LIBRARY"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, LIBRARY = sys.argv[1:3]


class FieldValue(ctypes.Structure):
    _fields_ = [
        ("fieldId", ctypes.c_uint),
        ("scopeId", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latencyUsec", ctypes.c_longlong),
        ("valueType", ctypes.c_uint),
        ("nvmlReturn", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    ]


class FakeGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.environ["FLYBALL_FAKEGPU"] = os.path.join(self.folder.name, "page")
        self.owner = subprocess.Popen([PROGRAM, "--gpus", "2", "--seed", "7", "--paused"], stdout=subprocess.PIPE)
        self.owner.stdout.readline()  # says that the page is there
        self.nvml = ctypes.CDLL(LIBRARY)
        self.assertEqual(self.nvml.nvmlInit_v2(), 0)
        self.gpu = ctypes.c_void_p()
        self.assertEqual(self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.gpu)), 0)

    def tearDown(self):
        self.nvml.nvmlShutdown()
        self.owner.terminate()
        self.owner.stdout.close()
        self.owner.wait(30)
        self.folder.cleanup()

    def ask(self, *words):
        return json.loads(subprocess.run([PROGRAM, *words], check=True, capture_output=True, timeout=60).stdout)

    def test_power_follows_the_limit(self):
        power = ctypes.c_uint()
        self.ask("step", "60s")
        self.assertEqual(self.nvml.nvmlDeviceGetPowerUsage(self.gpu, ctypes.byref(power)), 0)
        before = power.value
        self.assertEqual(self.nvml.nvmlDeviceSetPowerManagementLimit(self.gpu, 300000), 0)
        self.ask("step", "20s")
        self.assertEqual(self.nvml.nvmlDeviceGetPowerUsage(self.gpu, ctypes.byref(power)), 0)
        self.assertLess(power.value, before * 0.7)
        truth = self.ask("status", "--json")["gpus"][0]
        self.assertEqual(truth["limit_enforced_mw"], 300000)
        self.assertAlmostEqual(power.value / 1000, truth["sensor_average_w"], places=2)

    def test_fields_carry_their_own_status(self):
        self.ask("step", "5s")
        self.ask("fault", "field", "186", "NO_DATA")
        values = (FieldValue * 2)()
        values[0].fieldId = 186
        values[1].fieldId = 83
        self.assertEqual(self.nvml.nvmlDeviceGetFieldValues(self.gpu, 2, values), 0)
        self.assertEqual([values[0].nvmlReturn, values[1].nvmlReturn], [21, 0])
        self.assertGreater(values[1].value, 0)

    def test_texts_and_errors(self):
        name = ctypes.create_string_buffer(96)
        self.assertEqual(self.nvml.nvmlDeviceGetName(self.gpu, name, 96), 0)
        self.assertIn(b"H100", name.value)
        self.nvml.nvmlErrorString.restype = ctypes.c_char_p
        self.assertEqual(self.nvml.nvmlErrorString(3), b"Not Supported")
        self.assertEqual(self.nvml.nvmlDeviceGetPowerUsage(self.gpu, None), 2)

    def test_a_killed_owner_is_a_driver_that_is_gone(self):
        self.owner.kill()
        self.owner.wait(30)
        power = ctypes.c_uint()
        self.assertEqual(self.nvml.nvmlDeviceGetPowerUsage(self.gpu, ctypes.byref(power)), 9)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
