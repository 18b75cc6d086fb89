"""Where text comes from: documents, vocabularies, batches; files, real and planted corpora."""

from heedful.corpora.batches import Batch, batches, collate
from heedful.corpora.catalogue import available, load_corpus, recipe_of
from heedful.corpora.documents import Corpus, Document
from heedful.corpora.encoded import Encoded, EncodedCorpus, encode, with_rare_unknown
from heedful.corpora.files import FileReading, read_file, read_texts
from heedful.corpora.labels import match_labels
from heedful.corpora.lexicon import load_lexicon
from heedful.corpora.parallel_corpora import load_parallel
from heedful.corpora.planted import planted
from heedful.corpora.prepared import load_prepared, prepare
from heedful.corpora.splits import keyed_split, redrawn
from heedful.corpora.synthetic import synthetic
from heedful.corpora.texts import document_of
from heedful.corpora.vectors import load_vectors
from heedful.corpora.vocabulary import Vocabulary

__all__ = [
    "Batch",
    "Corpus",
    "Document",
    "Encoded",
    "EncodedCorpus",
    "FileReading",
    "Vocabulary",
    "available",
    "batches",
    "collate",
    "document_of",
    "encode",
    "keyed_split",
    "load_corpus",
    "load_lexicon",
    "load_parallel",
    "load_prepared",
    "load_vectors",
    "match_labels",
    "planted",
    "prepare",
    "read_file",
    "read_texts",
    "recipe_of",
    "redrawn",
    "synthetic",
    "with_rare_unknown",
]
