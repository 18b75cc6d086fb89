"""Where text comes from: documents, vocabularies, batches; files, real and planted corpora."""

from heedful.corpora.batches import Batch, batches, collate
from heedful.corpora.catalogue import CATALOGUE, available, load_corpus, recipe_of
from heedful.corpora.documents import SPLITS, Corpus, Document
from heedful.corpora.encoded import (
    Encoded,
    EncodedCorpus,
    encode,
    encode_documents,
    with_rare_unknown,
)
from heedful.corpora.files import FileReading, read_file, read_texts
from heedful.corpora.labels import match_labels
from heedful.corpora.lexicon import load_lexicon, read_lexicon
from heedful.corpora.pairs import EncodedPairs, Pairs
from heedful.corpora.parallel import Parallel, read_pairs
from heedful.corpora.parallel_corpora import load_parallel
from heedful.corpora.pieces import PieceTokeniser, bleu, encode_parallel
from heedful.corpora.planted import planted
from heedful.corpora.planted_pairs import planted_pairs
from heedful.corpora.prepared import load_prepared, prepare
from heedful.corpora.redrawing import redrawn
from heedful.corpora.sentences import sentence_numbers
from heedful.corpora.splits import keyed_split
from heedful.corpora.synthetic import synthetic
from heedful.corpora.texts import document_of
from heedful.corpora.tokens import TOKENISERS, Tokens, tokenise
from heedful.corpora.vectors import Vectors, load_vectors
from heedful.corpora.vocabulary import SPECIALS, Vocabulary

__all__ = [
    "CATALOGUE",
    "SPECIALS",
    "SPLITS",
    "TOKENISERS",
    "Batch",
    "Corpus",
    "Document",
    "Encoded",
    "EncodedCorpus",
    "EncodedPairs",
    "FileReading",
    "Pairs",
    "Parallel",
    "PieceTokeniser",
    "Tokens",
    "Vectors",
    "Vocabulary",
    "available",
    "batches",
    "bleu",
    "collate",
    "document_of",
    "encode",
    "encode_documents",
    "encode_parallel",
    "keyed_split",
    "load_corpus",
    "load_lexicon",
    "load_parallel",
    "load_prepared",
    "load_vectors",
    "match_labels",
    "planted",
    "planted_pairs",
    "prepare",
    "read_file",
    "read_lexicon",
    "read_pairs",
    "read_texts",
    "recipe_of",
    "redrawn",
    "sentence_numbers",
    "synthetic",
    "tokenise",
    "with_rare_unknown",
]
