#!/bin/sh
# PaddleRec's gpubox training, from any directory; arguments go to regatta train.
# To restrict devices: FLAGS_selected_gpus=0,1 sh tools/run_gpubox.sh
tools=$(cd "$(dirname "$0")" && pwd)
exec python3 -u "$tools/static_gpubox_trainer.py" -m "$tools/../models/rank/dnn/config_gpubox.yaml" "$@"
