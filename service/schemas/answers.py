"""What goes out, field by field."""

import marshmallow as ma
from marshmallow import fields

from service.database.tables import Kind, Scope, State
from service.schemas.fields import LABEL, OBJECT, POINT, SHARES, BaseSchema, ListOrEmpty, json_value, text


class DataSet(BaseSchema):
    """A data set."""

    id = text("its id")
    name = text("what it is called")
    n_rows = fields.Integer()
    n_attributes = fields.Integer()
    task = text("what its target asks for; null without a target", allow_none=True)
    declared = json_value("every column: kind, role, categories", OBJECT, data_key="schema")
    notices = fields.List(fields.String(), metadata={"description": "what a reader should know"})
    fingerprint = text("SHA-256 of schema and cells")
    created = fields.AwareDateTime()


class Key(BaseSchema):
    """An API key, without its secret."""

    id = text("its id, which is a part of the key")
    name = text("whose it is")
    scopes = fields.List(fields.String(metadata={"enum": [scope.value for scope in Scope]}))
    models = fields.List(fields.String(), allow_none=True, metadata={"description": "that it reaches; null: all"})
    created = fields.AwareDateTime()
    expires = fields.AwareDateTime(allow_none=True)
    revoked = fields.AwareDateTime(allow_none=True)


class NewKey(Key):
    """An API key with its secret, which is shown this once."""

    token = text("the key itself: send it as `Authorization: Bearer …`")


class RowPage(BaseSchema):
    """Some rows of a data set."""

    items = fields.List(json_value("column names and values", {"type": "object", "additionalProperties": LABEL}))
    next = fields.Integer(allow_none=True, metadata={"description": "cursor of the next page; null: there is none"})


class Fault(BaseSchema):
    """One thing that is wrong."""

    pointer = text("JSON pointer into what was sent; a query parameter counts as a member")
    code = text("a stable word for programs")
    message = text("what is wrong and what is legal")


class JobError(BaseSchema):
    """Why a job failed."""

    code = fields.String()
    message = fields.String()
    errors = fields.List(fields.Nested(Fault))


class JobResult(BaseSchema):
    """What came of a job: a new version of a model, what a comparison says, or how many rows were answered."""

    model = fields.String()
    version = fields.Integer()
    summary = json_value("sizes, training and held-out figures", OBJECT)
    verdict = text("which candidate is better, and whether the difference means anything; the rest is at /result")
    n_rows = fields.Integer(metadata={"description": "rows answered, or compared on; what came of it: /result"})
    operating_point = json_value("by which the rows were answered, if by any", POINT)


class Importance(BaseSchema):
    """An attribute's share of what the tests of a tree gain."""

    attribute = text("its name")
    importance = fields.Float(metadata={"description": "from 0 to 1; all add up to 1, or are 0"})


class Importances(BaseSchema):
    """The attributes of a version, the most telling first."""

    attributes = fields.List(fields.Nested(Importance))


class EvaluatedCandidate(BaseSchema):
    """One way of training, tested."""

    name = fields.String()
    config = json_value("every field, as it was trained", OBJECT)
    figures = json_value("by measure: mean and standard deviation over the folds, and each fold's own", OBJECT)
    confusion = json_value(
        "of a classification, all folds together: the weight of each true class (a row each) by what was answered; "
        "rows of a class that is not among these are in none of the cells",
        {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
    )
    leaves = json_value("of the trees: mean, and each fold's own; of a list of rules, how many rules", OBJECT)
    seconds = fields.Float(metadata={"description": "to train and prune, the mean over the folds"})
    notes = json_value(
        "on one split: what one should know of the rows that it was tested on, such as classes that it has not learned",
        {"type": "array", "items": {"type": "string"}},
    )


class Difference(BaseSchema):
    """The best candidate against another one."""

    better = text("name of the best candidate")
    other = text("name of the other one")
    by = fields.Float(metadata={"description": "how much better, in the measure; at least 0"})
    p_value = fields.Float(metadata={"description": "chance of such a difference if there were none; two-sided"})
    test = text("which paired test says so")
    means_something = fields.Boolean(metadata={"description": "whether the p-value is below 0.05"})


class PruningEffect(BaseSchema):
    """A candidate that prunes, beside the candidate that is the same in everything else."""

    pruned = text("name of the one")
    unpruned = text("name of the other")
    gain = fields.Float(metadata={"description": "how much better the pruned one is, in the measure; below 0: worse"})
    p_value = fields.Float(metadata={"description": "chance of such a difference if there were none; two-sided"})
    test = text("which paired test says so")
    leaves_kept = fields.Float(metadata={"description": "leaves of the pruned trees to those of the unpruned ones"})
    verdict = text("better, worse, or may be chance")


class Comparison(BaseSchema):
    """What came of comparing several ways of training; the same as `espalier evaluate --json` prints."""

    dataset = text("id of the data set")
    measure = text("what is compared: accuracy (more is better) or rmse (less is better)")
    classes = fields.List(
        json_value("a class", LABEL), metadata={"description": "of the confusion matrices, in this order"}
    )
    n_rows = fields.Integer()
    n_tested = fields.Integer(
        metadata={"description": "rows with weight that each was tested on, of all folds together"}
    )
    folds = fields.Integer(metadata={"description": "how many trees of each candidate; 1 with a holdout"})
    label_noise = fields.Float()
    verdict = text("which is better, and whether the difference means anything")
    candidates = fields.List(fields.Nested(EvaluatedCandidate))
    differences = fields.List(fields.Nested(Difference))
    pruning_effects = fields.List(fields.Nested(PruningEffect))


class Job(BaseSchema):
    """A piece of work that a worker does."""

    id = text("its id")
    kind = fields.String(metadata={"enum": [kind.value for kind in Kind]})
    state = fields.String(metadata={"enum": [state.value for state in State]})
    model = fields.String(allow_none=True)
    data_set_id = fields.String(allow_none=True, data_key="dataset")
    progress = fields.Float(metadata={"description": "0 to 1: share of the training weight settled"})
    phase = text("what it does now")
    attempt = fields.Integer(metadata={"description": "attempts begun"})
    max_attempts = fields.Integer()
    cancel_requested = fields.Boolean()
    result = fields.Nested(JobResult, allow_none=True)
    error = fields.Nested(JobError, allow_none=True)
    created = fields.AwareDateTime()
    started = fields.AwareDateTime(allow_none=True)
    finished = fields.AwareDateTime(allow_none=True)


class Model(BaseSchema):
    """A model: a name with versions."""

    name = fields.String()
    last_number = fields.Integer(data_key="newest_version")
    description = fields.String(allow_none=True)
    tags = ListOrEmpty(fields.String())
    mask = ListOrEmpty(
        fields.String(), metadata={"description": "attributes whose values are not kept in the decision log"}
    )
    retention_days = fields.Integer(
        allow_none=True,
        metadata={"description": "days after which decisions are deleted; null: as ESPALIER_RETENTION_DAYS says"},
    )
    operating_point = json_value("from which probability on the label is given; null: the most probable one is", POINT)
    created = fields.AwareDateTime()


class AliasEvent(BaseSchema):
    """One change of an alias; the newest is in force."""

    model = fields.String(attribute="version.model.name")
    alias = fields.String()
    version = fields.Integer(attribute="version.number", metadata={"description": "that it points at since then"})
    number = fields.Integer(metadata={"description": "changes of this alias, counted from 1"})
    event = text("set or rollback")
    at = fields.AwareDateTime()
    key_id = text("id of the key that asked; null where keys were off", data_key="key", allow_none=True)


class Version(BaseSchema):
    """An immutable version of a model."""

    model = fields.String(attribute="model.name")
    number = fields.Integer(data_key="version")
    parent_number = fields.Integer(
        allow_none=True, data_key="parent", metadata={"description": "the version that it was pruned from"}
    )
    data_set_id = fields.String(allow_none=True, data_key="dataset")
    job_id = fields.String(allow_none=True, data_key="job")
    preset = fields.String()
    summary = json_value("sizes, training and held-out figures", OBJECT)
    document_sha256 = fields.String()
    seconds = fields.Float(metadata={"description": "that training or pruning took"})
    created = fields.AwareDateTime()
    archived = fields.AwareDateTime(allow_none=True, metadata={"description": "since when it answers no more"})


class Step(BaseSchema):
    """One test on the path to a leaf."""

    node = fields.Integer()
    attribute = fields.String()
    test = text("`<=` against a threshold, `in` a set of categories, or `known`")
    set = fields.List(
        json_value("a category", LABEL), metadata={"description": "of an `in` test: the branch that was taken"}
    )
    threshold = json_value("of a `<=` test: a number, a category of an ordinal attribute, or a date", LABEL)
    value = json_value("the row's own value; null: missing", LABEL)
    branch = text("whether the test held: yes or no")
    reason = text("why the branch was taken without a value: missing or unseen")
    surrogate = json_value("the test that decided where the value could not: attribute, test, value, branch", OBJECT)
    imputed = json_value("the value that stood in for one that is missing or unseen, where the training said so", LABEL)
    margin = fields.Float(metadata={"description": "distance of the value from the threshold"})
    weight = fields.Float(metadata={"description": "training weight at the node"})
    distribution = json_value("share of each class at the node (classification)", SHARES)
    mean = fields.Float(metadata={"description": "mean at the node (regression)"})


class Condition(BaseSchema):
    """All tests of one attribute on a path, merged."""

    attribute = fields.String()
    above = json_value("the value is greater than this", LABEL)
    at_most = json_value("the value is at most this", LABEL)
    categories = fields.List(
        json_value("a category", LABEL), data_key="in", metadata={"description": "it is one of these"}
    )
    known = fields.Boolean(metadata={"description": "the value is known, or missing"})
    text = text("the same as a sentence")


class Flags(BaseSchema):
    """What was not as in training."""

    missing = fields.List(fields.String(), metadata={"description": "attributes without a value"})
    unseen = fields.List(fields.String(), metadata={"description": "attributes with a category never seen in training"})


class Way(BaseSchema):
    """One of several ways that a row with a missing value goes, with its share."""

    weight = fields.Float()
    leaf = fields.Integer()
    path = fields.List(fields.Nested(Step))


class Answer(BaseSchema):
    """The answer for one row, without what led to it."""

    label = json_value("the class (classification)", LABEL)
    distribution = json_value("share of each class (classification)", SHARES)
    confidence = fields.Float(metadata={"description": "Wilson's lower bound of the label's share (classification)"})
    value = fields.Float(metadata={"description": "the number (regression)"})
    std = fields.Float(metadata={"description": "standard deviation of the training rows at the leaf (regression)"})
    support = fields.Float(metadata={"description": "training weight at the leaf"})
    leaf = fields.Integer(metadata={"description": "number of the node, or of the rule, that answers"})
    flags = fields.Nested(Flags)
    errors = fields.List(
        fields.Nested(Fault), metadata={"description": "why the row was refused; then there is no answer"}
    )


class Explained(Answer):
    """The answer for one row with what led to it."""

    path = fields.List(fields.Nested(Step), metadata={"description": "every test from the root to the leaf"})
    paths = fields.List(
        fields.Nested(Way), metadata={"description": "where missing values lead several ways: the 100 heaviest of them"}
    )
    n_paths = fields.Integer(metadata={"description": "how many ways there are, where there are several"})
    conditions = fields.List(
        fields.Nested(Condition), metadata={"description": "the path merged, one condition an attribute"}
    )
    nodes = fields.List(
        fields.Integer(), metadata={"description": "in the place of the path where values are not there any more"}
    )
    rule = text("the path as a sentence")
    baseline = fields.Float(metadata={"description": "the label's share, or the mean, at the root (full)"})
    contributions = json_value("what each attribute added to it on the way (full)", SHARES)
    shap = json_value("the same by Shapley: `baseline` and `contributions` add up to the answer (full)", OBJECT)
    reasons = fields.List(
        json_value("`attributes` with their values, whether all are needed (`minimal`), and the `text`", OBJECT),
        metadata={"description": "attributes whose values alone force the answer, whatever the others are (full)"},
    )
    cost = json_value("`total` and cost by attribute of those that were looked at, each paid once (full)", OBJECT)
    linear = json_value("the linear model that answers: intercept, terms, smoothing (model trees)", OBJECT)
    passed_over = fields.List(
        json_value("a rule, and the condition that does not hold", OBJECT),
        metadata={"description": "the rules before the one that answers (full, lists of rules)"},
    )


class Prediction(Explained):
    """The answer for one row, logged."""

    decision_id = fields.String(
        allow_none=True, metadata={"description": "where the decision can be looked up; null where none is logged"}
    )


class PredictionAnswer(BaseSchema):
    """The answers for all rows of a request."""

    model = fields.String()
    version = fields.Integer()
    operating_point = json_value("from which probability on the label is given; null: the most probable one is", POINT)
    audited = fields.Boolean(metadata={"description": "false where answers do not wait until they are logged"})
    predictions = fields.List(fields.Nested(Prediction))


class Problem(BaseSchema):
    """What is wrong with a request (RFC 9457)."""

    type = fields.String(required=True)
    title = fields.String(required=True)
    status = fields.Integer(required=True)
    detail = fields.String(required=True)
    instance = fields.String(required=True)
    request_id = fields.String(required=True)
    retryable = fields.Boolean(required=True)
    errors = fields.List(fields.Nested(Fault), required=True)


class Status(BaseSchema):
    """Whether the process lives, or can answer."""

    status = fields.String()


def page_of(schema: type[ma.Schema]) -> type[ma.Schema]:
    """Give the shape of a page of a list."""
    return ma.Schema.from_dict(
        {
            "items": fields.List(fields.Nested(schema)),
            "next": fields.String(allow_none=True, metadata={"description": "cursor of the next page; null: no more"}),
        },
        name=f"{schema.__name__}Page",
    )


DataSetPage = page_of(DataSet)
JobPage = page_of(Job)
KeyPage = page_of(Key)
AliasPage = page_of(AliasEvent)
ModelPage = page_of(Model)
VersionPage = page_of(Version)
