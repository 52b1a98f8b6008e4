"""Connections that break, wait and are refused: lanes come back, and nothing is lost or done twice."""
import random
import unittest

import trials


class NetworkTest(unittest.TestCase):
    def test_cuts_at_random_bytes_and_moments(self):
        for mode, seed in (("async", 1), ("sync", 2)):
            count = trials.cut(random.Random(seed), 16, mode)
            self.assertGreater(count["cuts"], 0)
            self.assertGreater(count["reconnects"], 0)

    def test_delays_and_stalls(self):
        self.assertGreater(trials.delay(random.Random(1), 1)["stalls"], 0)

    def test_what_the_network_changes_is_found(self):
        for tls in (True, False):
            count = trials.garble(random.Random(1), 6, tls)
            self.assertGreater(count["flips"] + count["duplicates"], 0)
            self.assertGreater(count["reconnects"], 0)


if __name__ == "__main__":
    unittest.main()
