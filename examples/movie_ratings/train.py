"""Predicts ratings from a file in the format of MovieLens (user::movie::rating::time): vectors of users and movies.

    python3 examples/movie_ratings/train.py                           # makes up ratings, and learns them
    python3 examples/movie_ratings/train.py --ratings ml-1m/ratings.dat
    regatta launch --server_num=2 --worker_num=2 -- python3 examples/movie_ratings/train.py
"""
import argparse
import os
import pathlib

import torch
import torch.nn.functional as F

import regattarec.torch as rt

DIM, BATCH = 16, 512


def make_ratings(path, users=2000, movies=1000, ratings=200_000):
    """Made-up users with tastes and movies with qualities, some of which are seen far more often than others."""
    random = torch.Generator().manual_seed(7)
    taste, kind = torch.randn(users, 4, generator=random), torch.randn(movies, 4, generator=random)
    mood, quality = torch.randn(users, generator=random), torch.randn(movies, generator=random)
    user = torch.rand(ratings, generator=random).pow(2).mul(users).long()
    movie = torch.rand(ratings, generator=random).pow(3).mul(movies).long()
    liking = 0.4 * mood[user] + 0.5 * quality[movie] + 0.3 * (taste[user] * kind[movie]).sum(1)
    rating = (3.5 + liking + 0.3 * torch.randn(ratings, generator=random)).round().clamp(1, 5).long()
    unfinished = path.with_suffix(f".{os.getpid()}")
    with open(unfinished, "w") as file:
        for line in zip(user.tolist(), movie.tolist(), rating.tolist()):
            print("::".join(str(field) for field in (*line, 978300760)), file=file)
    unfinished.replace(path)


def read_ratings(path):
    """Users, movies and ratings, in a fixed random order."""
    fields = []
    with open(path) as file:
        for number, line in enumerate(file, 1):
            try:
                fields.append([int(field) for field in line.split("::")[:3]])
                if len(fields[-1]) < 3:
                    raise ValueError("there are too few fields")
            except ValueError as error:
                raise SystemExit(f"{path}:{number}: want user::movie::rating::time, not {line.strip()!r}: {error}")
    if not fields:
        raise SystemExit(f"{path} holds no ratings")
    rows = torch.tensor(fields)
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]
    return rows[:, 0], rows[:, 1], rows[:, 2].float()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        rule, init = rt.Adagrad(lr=0.1), rt.Uniform(0.1)
        self.users = rt.Embedding(None, DIM, table="users", rule=rule, init=init)
        self.movies = rt.Embedding(None, DIM, table="movies", rule=rule, init=init)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(2 * DIM, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        torch.nn.init.constant_(self.mlp[-1].bias, 3.5)

    def forward(self, user, movie):
        rt.prefetch((self.users, user), (self.movies, movie))       # one request for both tables
        user, movie = self.users(user), self.movies(movie)
        return (user * movie).sum(1) + self.mlp(torch.cat([user, movie], 1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=pathlib.Path, default=pathlib.Path("ratings.dat"),
                        help="made up if it is not there and not named")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--save", default="ratings_model", help="the folder of the saves")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = Model()
    optimizer = rt.wrap(torch.optim.Adam(model.mlp.parameters(), lr=1e-3), model)
    if not options.ratings.exists():
        if options.ratings != parser.get_default("ratings"):
            raise SystemExit(f"{options.ratings}: no such file")
        make_ratings(options.ratings)
    user, movie, rating = read_ratings(options.ratings)
    held_out = len(rating) // 10
    worker, workers = int(os.environ.get("PADDLE_TRAINER_ID", 0)), int(os.environ.get("PADDLE_TRAINERS_NUM", 1))
    mine = torch.arange(held_out + worker, len(rating), workers)

    def batches(epoch):
        order = mine[torch.randperm(len(mine), generator=torch.Generator().manual_seed(epoch))]
        return ((user[part], movie[part], rating[part]) for part in order.split(BATCH))

    with rt.session(save=options.save, metric="regression") as session:
        for epoch in session.epochs(options.epochs):
            for users, movies, ratings in session.batches(batches):
                predicted = model(users, movies)
                loss = F.mse_loss(predicted, ratings)
                session.observe(loss, predictions=predicted, labels=ratings)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    model.eval()
    with torch.no_grad():
        predicted = model(user[:held_out], movie[:held_out])
    error = F.mse_loss(predicted, rating[:held_out]).sqrt()
    guess = F.mse_loss(rating[held_out:].mean().expand(held_out), rating[:held_out]).sqrt()
    print(f"held-out rmse {error:.4f}; the mean of all ratings gives {guess:.4f}", flush=True)


if __name__ == "__main__":
    main()
