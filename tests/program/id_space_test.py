"""The same id in two slots: one row, or a row for each slot; a save keeps which it was."""
import re

from program import CONFIG, ProgramTest, main

SLOT = ("-o", "runner.id_space=slot")
MASK = 2**64 - 1


def mix64(x):  # docs/format/input.md
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def hash_bytes(text):
    h = 0xCBF29CE484222325 ^ mix64(0)
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return mix64(h)


class IdSpaceTest(ProgramTest):
    def setUp(self):
        super().setUp()
        lines = []
        for i in range(40):
            ids = " ".join(f"{slot}:{i % 4}" for slot in range(1, 27))  # ids 0 … 3 in every slot
            lines.append(f"click:{i % 2} " + "dense_feature:0.5 " * 13 + ids)
        self.write("train/part-0.txt", "\n".join(lines) + "\n")
        self.write("config.yaml", CONFIG.format(batch=10))

    def run_verb(self, verb, *more, code=0):
        return self.run_regatta(verb, "-m", "config.yaml", *more, code=code)

    def keys(self, save):
        return {int(k) for k in re.findall(r"^embedding\t(\d+)\t", self.dump(save), re.MULTILINE)}

    def test_a_row_for_every_slot(self):
        self.run_verb("train", "-o", "runner.model_save_path=shared")
        self.run_verb("train", *SLOT, "-o", "runner.model_save_path=slot")
        self.assertEqual(self.keys("shared"), {0, 1, 2, 3})
        self.assertEqual(self.keys("slot"),
                         {mix64(i ^ hash_bytes(str(slot))) for i in range(4) for slot in range(1, 27)})

    def test_a_save_keeps_it(self):
        self.run_verb("train", *SLOT, "-o", "runner.epochs=1")
        infer = ("infer", "-o", "runner.test_data_dir=train", "-o", "runner.epochs=1")
        self.run_verb(*infer, *SLOT)
        for verb in (infer, ("train", "--resume"),
                     ("train", "-o", "runner.model_init_path=model/0", "-o", "runner.model_save_path=warm")):
            _, err = self.run_verb(*verb, code=1)
            self.assertIn("table embedding: id_space (runner.id_space): saved slot, wanted shared", err)
        out, _ = self.run_verb("train", "--resume", *SLOT)
        self.assertIn("epoch: 1 done", out)

    def test_the_ids_of_the_file_are_shown(self):
        out, _ = self.run_verb("train", "--dry-run", *SLOT)
        self.assertRegex(out, r"click:1 .* 1:1 2:1 3:1 ")


if __name__ == "__main__":
    main()
