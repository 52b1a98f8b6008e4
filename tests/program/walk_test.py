"""The walk of one batch (docs/walk.md), asserted from the spans of a trace."""
import json
from collections import defaultdict

from program import ProgramTest, main

STEP = ["pull", "gather", "forward", "backward", "merge", "commit"]


class WalkTest(ProgramTest):
    def test_every_step_is_the_same_walk_and_planning_runs_ahead(self):
        self.make_job(files=1, copies=3, batch=10)  # 24 batches
        # Without a thread of its own plan k + 1 would begin after commit k ends, always. Where all cores are taken the
        # planner may be late at every step of a run.
        ahead = []
        while len(ahead) < 8 and max(ahead, default=0) <= 12:
            ahead.append(self.walk())
        self.assertGreater(max(ahead), 12, f"plans that ran ahead, of 24, in each run: {ahead}")

    def walk(self):
        """Checks the spans of a run; how many plans began before the commit of the batch before them."""
        self.run_regatta("train", "-m", "config.yaml", "-o", "runner.epochs=1", "--overwrite", "--trace", "out.json")
        events = [e for e in json.loads((self.folder / "out.json").read_text())["traceEvents"] if e["ph"] == "X"]
        threads = defaultdict(list)
        for event in sorted(events, key=lambda e: e["ts"]):
            threads[event["tid"]].append(event)
        trainer = next(t for t in threads.values() if t[0]["name"] == "pull")
        self.assertEqual([e["name"] for e in trainer], STEP * 24)
        for before, after in zip(trainer, trainer[1:]):
            self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + 0.01)
        planner = next(t for t in threads.values() if t[0]["name"] == "plan")
        self.assertEqual([e["name"] for e in planner], ["plan"] * 24)
        commits = [e for e in trainer if e["name"] == "commit"]
        return sum(plan["ts"] < commit["ts"] for plan, commit in zip(planner[1:], commits))


if __name__ == "__main__":
    main()
