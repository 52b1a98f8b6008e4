"""Workers that are killed, and come back: nothing that they pushed is lost, nothing is done twice, every step of sync is
computed from the rows that it must see."""
import random
import unittest

import trials


class ReturnTest(unittest.TestCase):
    def test_killed_workers_lose_and_double_nothing(self):
        count = trials.worker_kill(random.Random(1), 5, "async", ("--keys", 20, "--lanes", 2, "--in_flight", 8))
        self.assertGreaterEqual(count["kills"], 5)
        self.assertGreater(count["pushes"], 20)

    def test_killed_workers_see_exactly_the_steps_before_theirs(self):
        count = trials.worker_kill(random.Random(2), 8, "sync", ("--keys", 20, "--lanes", 2))
        self.assertGreaterEqual(count["kills"], 5)

    def test_a_step_that_some_lanes_have_is_computed_again_from_the_same_rows(self):
        self.assertEqual(trials.worker_half(random.Random(3), 6, "sync")["crashes"], 6)

    def test_a_batch_that_some_lanes_have_is_pushed_to_the_others(self):
        self.assertEqual(trials.worker_half(random.Random(4), 6, "async")["crashes"], 6)


if __name__ == "__main__":
    unittest.main()
