"""Servers that are killed, and come back: nothing that they acknowledged is lost, nothing is done twice."""
import random
import unittest

import trials


class KillTest(unittest.TestCase):
    def test_five_kills_under_load_lose_and_double_nothing(self):
        count = trials.kill(random.Random(1), 5, ledger=("--keys", 20, "--lanes", 2))
        self.assertGreater(count["pushes"], 20)
        self.assertGreater(count["reconnects"], 0)

    def test_every_step_of_sync_is_whole_and_once(self):
        count = trials.kill(random.Random(2), 3, "sync", ledger=("--keys", 20, "--lanes", 2))
        self.assertGreater(count["pushes"], 20)

    def test_servers_that_are_killed_while_workers_connect_are_waited_for(self):
        self.assertGreater(trials.connecting(random.Random(5), 5)["kills"], 1)  # one that comes too late is none

    def test_a_folder_starts_after_a_kill_at_its_very_first_start(self):
        with trials.Ground() as ground:
            server = trials.Server(ground, 0, 1)
            server.start("log.end=crash", wait=False)
            self.assertFalse(server.listens())
            server.start()

    def test_a_job_that_has_ended_is_forgotten_whole(self):
        self.assertGreater(trials.end(random.Random(4), 2)["crashes"], 0)


if __name__ == "__main__":
    unittest.main()
