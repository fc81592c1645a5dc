"""Permissions: the scopes of a caller's key, and the models that the key is limited to, decide what is allowed."""

from dataclasses import dataclass

from service.database.tables import Job, Kind, Scope
from service.errors import Forbidden

SHARED = "data sets are shared: this key may add them, but not change or delete them"


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, and what its key allows."""

    key_id: str | None  # None: keys are off
    scopes: frozenset[Scope]  # `admin` allows everything
    models: frozenset[str] | None = None  # models that the key is limited to; None: all models

    def check_scope(self, *scopes: Scope) -> None:
        """Raise `Forbidden` if the key has neither one of these scopes nor `admin`."""
        if self.scopes.isdisjoint({*scopes, Scope.ADMIN}):
            needed = " or ".join(scopes)
            raise Forbidden(f"this needs a key with the scope {needed}; this one has {', '.join(sorted(self.scopes))}")

    def check_model(self, name: str | None) -> None:
        """Raise `Forbidden` if the key is limited to other models; None (no model) is always allowed."""
        if self.models is not None and name is not None and name not in self.models:
            raise Forbidden(self._reach())

    def check_job(self, job: Job | None, scope: Scope) -> None:
        """Raise `Forbidden` if the scope is missing, or the key is limited to models and `job` is not a job for them.

        A key with the scope `predict` needs no other scope for prediction jobs that it requested. A key that is limited
        to models may use a job without a model only if it requested that job. None means that there is no such job.
        """
        is_own = job is not None and job.key_id == self.key_id
        if not is_own or Scope.PREDICT not in self.scopes or (job and job.kind) != Kind.PREDICT:
            self.check_scope(scope)
        model = job and job.model
        if self.models is not None and not (is_own if model is None else model in self.models):
            raise Forbidden(f"{self._reach()}, and among jobs without a model only those that it requested")

    def check_found(self, model: str | None) -> None:
        """Raise `Forbidden` if the key is limited to models and `model` (None: no such decision) is not among them."""
        if self.models is not None and model not in self.models:
            raise Forbidden(f"{self._reach()}, and none of them has made this decision")

    def check_unlimited(self, why: str) -> None:
        """Raise `Forbidden` with the reason if the key is limited to models."""
        if self.models is not None:
            raise Forbidden(f"{self._reach()}; {why}")

    def _reach(self) -> str:
        return f"this key reaches only the models {', '.join(sorted(self.models or ()))}"


ANONYMOUS = Caller(key_id=None, scopes=frozenset(Scope))
