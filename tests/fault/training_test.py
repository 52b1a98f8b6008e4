"""A training job whose processes are killed saves what the undisturbed one saves."""
import random
import unittest

from training_trials import SHAPES, training, training_end, training_geo, training_workers


class TrainingTest(unittest.TestCase):
    def test_the_save_of_a_disturbed_job_is_equal_byte_by_byte(self):
        self.assertGreaterEqual(training(random.Random(1), 1)["kills"], 1)

    def test_the_save_of_a_job_whose_workers_and_servers_are_killed_is_equal_byte_by_byte(self):
        self.assertGreaterEqual(training_workers(random.Random(3), 4, SHAPES[0])["kills"], 4)

    def test_workers_killed_between_many_small_epochs_meet_and_save_as_if_they_had_not_been(self):
        self.assertGreaterEqual(training_workers(random.Random(4), 4, SHAPES[1])["kills"], 4)

    def test_workers_killed_around_checkpoints_of_the_job_meet_again(self):
        self.assertGreaterEqual(training_workers(random.Random(5), 4, SHAPES[4])["kills"], 4)

    def test_workers_of_geo_come_back_and_no_row_is_missing(self):
        self.assertGreaterEqual(training_geo(random.Random(6), 3)["kills"], 3)

    def test_a_job_whose_processes_are_killed_when_it_is_done_is_done(self):
        self.assertGreaterEqual(training_end(random.Random(7), 1)["ends"], 1)


if __name__ == "__main__":
    unittest.main()
