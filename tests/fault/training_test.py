"""A training job whose servers are killed saves what the undisturbed one saves."""
import random
import unittest

import trials


class TrainingTest(unittest.TestCase):
    def test_the_save_of_a_disturbed_job_is_equal_byte_by_byte(self):
        self.assertGreaterEqual(trials.training(random.Random(1), 1)["kills"], 1)


if __name__ == "__main__":
    unittest.main()
