"""Trains, and calls other libraries that bring a protobuf or a gRPC of their own, in one process.

    python3 beside.py regattarec.torch pyarrow grpc      # imported in this order
"""
import importlib
import io
import sys
from concurrent import futures


def use_pyarrow():
    import pyarrow
    import pyarrow.flight
    from pyarrow import parquet
    table = pyarrow.table({"id": list(range(1000)), "word": ["w%d" % (i % 7) for i in range(1000)]})
    memory = io.BytesIO()
    parquet.write_table(table, memory, compression="zstd")
    if parquet.read_table(memory) != table:
        sys.exit("pyarrow: what was read is not what was written")

    class Tables(pyarrow.flight.FlightServerBase):  # Arrow's own gRPC and protobuf
        def do_get(self, context, ticket):
            return pyarrow.flight.RecordBatchStream(table)

    with Tables("grpc://127.0.0.1:0") as server:
        with pyarrow.flight.connect(f"grpc://127.0.0.1:{server.port}") as client:
            if client.do_get(pyarrow.flight.Ticket(b"")).read_all() != table:
                sys.exit("pyarrow.flight: what came is not what was sent")
        server.shutdown()
    return "pyarrow " + pyarrow.__version__


def use_grpc():
    import grpc
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc
    server = grpc.server(futures.ThreadPoolExecutor(2))
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)
    server.stop(None).wait()
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        sys.exit("grpc: the health service does not serve")
    import google.protobuf
    return f"grpcio {grpc.__version__}, protobuf {google.protobuf.__version__}"


class Trainer:
    def __init__(self):
        import torch
        import regattarec.torch as rt
        torch.manual_seed(0)
        self.embedding = rt.EmbeddingBag(None, 4, mode="mean", table="slots", rule=rt.Adagrad(lr=0.1), init=rt.Uniform(0.1))
        self.layer = torch.nn.Linear(4, 1)
        self.optimizer = rt.wrap(torch.optim.Adam(self.layer.parameters(), lr=0.05), self.embedding)

    def steps(self, count):
        """The loss of the last one."""
        import torch
        ids = torch.arange(300).reshape(100, 3)
        labels = (torch.arange(100) % 3 == 0).float()
        for _ in range(count):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(self.layer(self.embedding(ids)).squeeze(1), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def main(names):
    for name in names:
        importlib.import_module(name)
    trainer = Trainer()
    first = trainer.steps(1)
    used = [use() for name, use in (("pyarrow", use_pyarrow), ("grpc", use_grpc)) if name in names]
    last = trainer.steps(60)
    import torch
    print(f"{' '.join(names)}: loss {first:.4f} to {last:.4f}; torch {torch.__version__}, {', '.join(used)}", flush=True)
    if not last < 0.9 * first:
        sys.exit("nothing was learnt")


if __name__ == "__main__":
    main(sys.argv[1:])
