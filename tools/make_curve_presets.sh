#!/bin/sh
# Makes presets/curves again from the measured data in $FLYBALL_SHARED. Run it in the root of the checkout after a build.
set -eu
data=${FLYBALL_SHARED:-../shared}/data
flyball=${FLYBALL:-build/release/flyball}

make_preset() { # NAME FILE BOARD WORKLOAD SOURCE
  "$flyball" fit "$data/$2" --board "$3" --workload "$4" --preset --source "$5" --licence Apache-2.0 \
    --output "presets/curves/$1.csv"
}

sweep="ml-energy/zeus @75a8b93, training jobs on one GPU at each power limit; time is of one epoch"
large="ml-energy/zeus branch kronos @1b1c4a9, pipeline-parallel training on four GPUs; time is of one iteration"

make_preset v100-bert-sentiment140 power_limit_curves/summary_power_v100.csv V100 \
  "sentiment140 bert_base_uncased, batch 16, adamw" "$sweep"
make_preset v100-bert-squad power_limit_curves/summary_power_v100.csv V100 \
  "squad bert_base_uncased, batch 32, adamw" "$sweep"
make_preset v100-resnet50-imagenet power_limit_curves/summary_power_v100.csv V100 \
  "imagenet resnet50, batch 256, adadelta" "$sweep"
make_preset p100-bert-squad power_limit_curves/summary_power_p100.csv P100 \
  "squad bert_base_uncased, batch 16, adamw" "$sweep"
make_preset a100-bloom-3b large_model_training/a100_power_limit.csv A100 "bloom-3b, batch 512" "$large"
