"""What a model shows of its layers beyond attention: values, and what is lost without them."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.models.tracing import LayerStack


class Followed(NamedTuple):
    """What the layers saw, and what their keys handed on."""

    stack: LayerStack
    values: tuple[Float[Tensor, "batch head token dim"], ...]
    """The values of each layer, from the lowest to the highest."""


class Mixed(NamedTuple):
    """How the words of each text, then its special tokens, take part in one another."""

    layers: Float[Tensor, "layer batch group group"]
    """How far each group (row) turns without each group, in every layer from the lowest."""
    pooling: Float[Tensor, "batch group"]
    """How the decision weighs the groups at the top."""


@runtime_checkable
class Followable(Protocol):
    """A model whose values can be looked at, and differentiated by."""

    @property
    def shows_values(self) -> bool:
        """Whether this one's can, with the architecture it has."""

    def followed(self, batch: Batch) -> Followed:
        """One pass over the batch, kept."""

    def value_products(
        self, batch: Batch, target: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch layer*head token"]:
        """⟨v_k, ∂p_y/∂v_k⟩ of every layer and head: attention times its gradient."""
