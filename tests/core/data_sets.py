"""What tests ask of a data set that was read, or refused."""

import pytest

from espalier.prediction.batch import predict_batch
from espalier.prediction.encode_columns import encode_columns


def kinds(data):
    return {feature.name: str(feature.kind) for feature in data.schema.features}


def categories(data, name):
    return data.schema.features[data.schema.place(name)].categories


def refused(error, call):
    with pytest.raises(error) as caught:
        call()
    return [(fault.path, fault.code) for fault in caught.value.faults]


def answers_and_shares(model, dataset):
    """The answer of each row of a data set, and the shares of the classes."""
    batch = predict_batch(model, encode_columns(model.schema, dataset, model.preparation.imputed), shares=True)
    return batch.answers, batch.shares
