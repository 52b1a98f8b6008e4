"""Servers that sleep past their lease: who takes their place has all that they acknowledged, and they acknowledge no more."""
import random
import unittest

import trials


class AsleepTest(unittest.TestCase):
    def test_a_server_that_slept_acknowledges_nothing(self):
        for mode, seed in (("async", 1), ("sync", 2)):
            self.assertGreater(trials.asleep(random.Random(seed), 2, mode=mode)["sleeps"], 1)

    def test_asleep_before_and_after_a_write_and_an_acknowledgement(self):
        names = ["log.write", "lane.logged", "lane.applied", "lane.reply", "log.segment"]
        trials.asleep(random.Random(3), len(names), names, "async")

    def test_asleep_within_a_checkpoint(self):
        names = ["save.switch", "file.rename", "compactor.written", "log.drop"]
        trials.asleep(random.Random(4), len(names), names, "async")


if __name__ == "__main__":
    unittest.main()
