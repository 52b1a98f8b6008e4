"""Files that are not as they were written, and disks that are full."""
import random
import unittest

import trials
from ground import Skipped


class DamageTest(unittest.TestCase):
    def test_a_spoiled_data_dir_is_found_or_harmless(self):
        count = trials.damage(random.Random(1), 12)
        self.assertGreater(count["detected"], 3)

    def test_spoiled_logs_and_saves_are_found_or_harmless(self):
        count = trials.spoiled(random.Random(1), 2)
        self.assertGreater(count["detected"], 2000)

    def test_a_full_disk_costs_nothing_that_was_acknowledged(self):
        try:
            trials.disk_full(random.Random(1), 1)
        except Skipped as skipped:
            self.skipTest(str(skipped))


if __name__ == "__main__":
    unittest.main()
