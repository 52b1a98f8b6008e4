"""A line through the prices of houses, with PaddlePaddle's Fluid API: 13 features to 1 price.

    python3 examples/fit_a_line/local.py

Ends with 0 as soon as a batch's mean cost is below 10, and with 1 after 100 passes. Every pass begins with a save of the
parameters to fit_a_line.model/, and reads it back.
"""
import sys

import paddle
import paddle.fluid as fluid

BATCH, PASSES, GOOD = 20, 100, 10.0


def main():
    features = fluid.layers.data(name="features", shape=[13])
    price = fluid.layers.data(name="price", shape=[1])
    guess = fluid.layers.fc(input=features, size=1)
    cost = fluid.layers.mean(fluid.layers.square_error_cost(input=guess, label=price))
    fluid.optimizer.SGD(learning_rate=0.001).minimize(cost)

    batches = paddle.batch(paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500), batch_size=BATCH)
    place = fluid.CPUPlace()
    feeder, exe = fluid.DataFeeder([features, price], place), fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    for number in range(PASSES):
        fluid.io.save_persistables(exe, "fit_a_line.model")
        fluid.io.load_persistables(exe, "fit_a_line.model")
        costs = []
        for batch in batches():
            value, = exe.run(feed=feeder.feed(batch), fetch_list=[cost])
            costs.append(value[0])
            if value[0] < GOOD:
                print(f"pass {number}: a batch's cost is {value[0]:.2f}")
                return 0
        print(f"pass {number}: mean cost {sum(costs) / len(costs):.2f}", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
