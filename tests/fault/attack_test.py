"""Every attack for a moment, in the clear and with TLS, on a server that a job trains with: the server lives, the job ends
well with every row exact, and the memory stays below a bound."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from attack import ALLOWED, TITLE, by_need, run  # noqa: E402
from ground import BIN  # noqa: E402

SECONDS = 0.7
SANITIZED = "san" in BIN.parent.name  # memory is another's then


class AttackTest(unittest.TestCase):
    def attacked(self, tls):
        for names in by_need():
            outcomes = run(names, tls, SECONDS)
            said = "\n".join(["", TITLE, *(outcome.row() for outcome in outcomes), outcomes[0].log])
            for outcome in outcomes:
                with self.subTest(outcome.attack):
                    self.assertTrue(outcome.alive, said)
                    if not SANITIZED:
                        self.assertLessEqual(outcome.above, ALLOWED, said)
            self.assertEqual(outcomes[0].well, "yes", said)
            self.assertTrue(outcomes[0].exact, said)
            print(said)

    def test_a_server_in_the_clear_outlives_every_attack(self):
        self.attacked(tls=False)

    def test_a_server_with_credentials_outlives_every_attack(self):
        self.attacked(tls=True)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
