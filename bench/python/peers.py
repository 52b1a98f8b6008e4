"""Lets the scripts of this folder import those of bench/peers, which do the same work with other means."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
