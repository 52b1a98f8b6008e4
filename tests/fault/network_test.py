"""Connections that break, wait and are refused: lanes come back, and nothing is lost or done twice."""
import random
import unittest

import trials


class NetworkTest(unittest.TestCase):
    def test_cuts_at_random_bytes_and_moments(self):
        for mode, seed in (("async", 1), ("sync", 2)):
            count = trials.cut(random.Random(seed), 20, mode)
            self.assertGreater(count["cuts"], 0)
            self.assertGreater(count["reconnects"], 0)

    def test_delays_and_stalls(self):
        self.assertGreater(trials.delay(random.Random(1), 2)["stalls"], 0)


if __name__ == "__main__":
    unittest.main()
