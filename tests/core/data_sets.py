"""What tests ask of a data set that was read, or refused."""

import pytest


def kinds(data):
    return {feature.name: str(feature.kind) for feature in data.schema.features}


def categories(data, name):
    return data.schema.features[data.schema.place(name)].categories


def refused(error, call):
    with pytest.raises(error) as caught:
        call()
    return [(fault.path, fault.code) for fault in caught.value.faults]
