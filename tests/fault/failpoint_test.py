"""Servers that crash before or after a write, an acknowledgement, an update, or within a checkpoint."""
import random
import unittest

import trials


class FailpointTest(unittest.TestCase):
    def test_a_crash_at_every_failpoint_of_async(self):
        names = [name for name in trials.FAILPOINTS if name != "step.complete"]
        count = trials.failpoint(random.Random(3), 0, names, most=1, ack="synced", **trials.SHORT_LOG)
        self.assertEqual([name for name in names if not count.get(name)], [], "no crash there")

    def test_a_crash_between_the_parts_of_a_step_and_its_update(self):
        self.assertEqual(trials.failpoint(random.Random(3), 0, ["step.complete"], mode="sync")["crashes"], 1)


if __name__ == "__main__":
    unittest.main()
