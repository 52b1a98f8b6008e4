"""Twenty steps of the DNN by every rule that a configuration can name, for rows and for dense parameters."""

import unittest

import dnn_test
import reference
from reference import Rule


def of_class(name, **settings):
    """Options of hyper_parameters.optimizer."""
    return [f"hyper_parameters.optimizer.{key}={value}" for key, value in {"class": name, **settings}.items()]


def of_rows(name, **settings):
    """Options of the embedding's own rule."""
    start = "table_parameters.embedding.embedx_sgd_param"
    return [f"{start}.{key}={value}" for key, value in {"name": name, **settings}.items()]


class Rules(dnn_test.Dnn):
    test_loss_and_gradients = test_twenty_steps_of_adam = test_predictions_and_auc = None

    def check(self, options, rows, dense):
        self.assert_trains_alike(self.data(75, seed=5), options, rows, dense)

    def test_adagrad(self):
        rule = lambda: Rule(reference.adagrad_v2, 0.01)
        self.check(of_class("Adagrad", learning_rate=0.01), rule, rule)

    def test_adam_with_a_large_epsilon(self):
        settings = {"beta1": 0.8, "beta2": 0.99, "epsilon": 0.001}
        rule = lambda: Rule(reference.adam, 0.01, **settings)
        self.check(of_class("Adam", learning_rate=0.01, **settings), rule, rule)

    def test_sgd_with_a_schedule_and_bounded_rows(self):
        rate = lambda step: 0.5 * 0.5 ** (step / 10)
        schedule = {"lr_schedule.name": "exponential", "lr_schedule.decay_rate": 0.5, "lr_schedule.decay_steps": 10}
        self.check(
            of_class("SGD", learning_rate=0.5, **schedule) + of_rows("sgd", weight_bounds="[-0.3,0.3]"),
            lambda: Rule(reference.sgd, rate, bound=0.3),
            lambda: Rule(reference.sgd, rate),
        )

    def test_rows_by_shared_adagrad_dense_by_momentum(self):
        self.check(
            of_class("Momentum", learning_rate=0.01) + of_rows("adagrad", learning_rate=1, initial_g2sum=0.001),
            lambda: Rule(reference.adagrad, 1, initial_g2sum=0.001),
            lambda: Rule(reference.momentum, 0.01),
        )

    def test_rows_by_std_adagrad_dense_by_nesterov_momentum(self):
        self.check(
            of_class("Momentum", learning_rate=0.01, momentum=0.8, nesterov=True)
            + of_rows("std_adagrad", learning_rate=1, initial_g2sum=0.001),
            lambda: Rule(reference.std_adagrad, 1, initial_g2sum=0.001),
            lambda: Rule(reference.momentum, 0.01, momentum=0.8, nesterov=True),
        )

    def test_rows_by_ftrl_dense_by_rmsprop(self):
        self.check(
            of_class("RMSProp", learning_rate=0.001)
            + of_rows("ftrl", alpha=0.2, beta=0.5, lambda1=0.01, lambda2=0.1),
            lambda: Rule(reference.ftrl, 0.2, beta=0.5, lambda1=0.01, lambda2=0.1),
            lambda: Rule(reference.rmsprop, 0.001),
        )

    def test_rows_by_momentum_dense_by_ftrl(self):
        self.check(
            of_class("Ftrl", learning_rate=0.05, lambda1=0.001) + of_rows("momentum", learning_rate=0.1),
            lambda: Rule(reference.momentum, 0.1),
            lambda: Rule(reference.ftrl, 0.05, lambda1=0.001),
        )

    def test_rows_by_rmsprop_dense_by_centered_rmsprop_with_momentum(self):
        self.check(
            of_class("RMSProp", learning_rate=0.001, rho=0.9, momentum=0.5, centered=True)
            + of_rows("rmsprop", rho=0.8, learning_rate=0.002, momentum=0),
            lambda: Rule(reference.rmsprop, 0.002, rho=0.8, centered=True),
            lambda: Rule(reference.rmsprop, 0.001, rho=0.9, momentum=0.5, centered=True),
        )

    def test_rows_by_shared_adam_dense_by_sgd(self):
        self.check(
            of_class("SGD", learning_rate=0.1) + of_rows("shared_adam", learning_rate=0.003),
            lambda: Rule(reference.shared_adam, 0.003),
            lambda: Rule(reference.sgd, 0.1),
        )


if __name__ == "__main__":
    unittest.main()
