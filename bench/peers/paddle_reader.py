"""Slot text on stdin → Paddle's MultiSlot text on stdout, the way its documents tell users to write a reader: a
subclass of MultiSlotDataGenerator. Its file is loaded without the rest of Paddle, which would take two seconds a pass."""
import importlib.util
import pathlib

import rounds

paddle = pathlib.Path(importlib.util.find_spec("paddle").origin).parent
spec = importlib.util.spec_from_file_location(
    "data_generator", paddle / "distributed/fleet/data_generator/data_generator.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

NAMES = ["click", "dense_feature"] + [str(slot) for slot in range(1, rounds.SLOTS + 1)]


class Reader(module.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def sample():
            values = {name: [] for name in NAMES}
            for word in line.split():
                name, value = word.split(":")
                values[name].append(float(value) if name == "dense_feature" else int(value) % rounds.ROWS)
            yield list(values.items())

        return sample


Reader().run_from_stdin()
