"""Nine tiny backbones with random weights and tokenizers of their own, made in a few seconds.

Each is a real checkpoint folder, saved as the real ones are: the same classes, tokenizer kinds,
special tokens and traps (tied decoders, shared layers, relative positions, no biases).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from tokenizers.processors import TemplateProcessing
from transformers import (
    AlbertConfig,
    AutoModelForMaskedLM,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    ModernBertConfig,
    MPNetConfig,
    PretrainedConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    XLMRobertaConfig,
)
from transformers.utils import logging

TEXTS = [
    "World news and World news , a great film with great acting and a great story",
    "a terrible film with terrible acting and a terrible story",
    "It was great . It was terrible . it was not bad , it was great !",
    "Is it good ? Yes , it is . Is it bad ? No , it is not . Maybe it is .",
    "Yes Yes Yes No No No Maybe Maybe Maybe great great terrible terrible",
    "World news , Sports news , Business news , Tech news : the story of the day",
    "the film was long and dull , but the story was good and the acting was fine",
    "great terrible great terrible yes no maybe great terrible yes no maybe",
] * 8

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,  # large, so that a leak or a shift shows in the answer
}
BERT_SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
ROBERTA_SPECIAL = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
ALBERT_SPECIAL = {"pad": "<pad>", "unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def wordpiece(special: dict[str, str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token=special["unk"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=list(special.values()))
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def byte_bpe(special: dict[str, str]) -> Tokenizer:
    """Byte-level, so " great" and "great" are two different tokens."""
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=list(special.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def unigram(special: dict[str, str]) -> Tokenizer:
    """As SentencePiece does it: a blank is part of the word behind it."""
    words = Counter(word for text in TEXTS for word in text.split())
    letters = sorted({letter for word in words for letter in word})
    vocabulary = [(token, 0.0) for token in special.values()]
    vocabulary += [(f"▁{word}", math.log(count)) for word, count in words.items()]
    vocabulary += [("▁", -10.0), *((letter, -10.0) for letter in letters)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, list(special).index("unk")))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return tokenizer


def framed(tokenizer: Tokenizer, special: dict[str, str], *, double: bool) -> None:
    """Put special tokens around texts: [CLS] a [SEP] b [SEP], or <s> a </s></s> b </s>."""
    cls, sep = special["cls"], special["sep"]
    second = f"{sep} $B {sep}" if double else f"$B:1 {sep}:1"
    tokenizer.post_processor = TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} {second}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (cls, sep)],
    )


Recipe = tuple[
    type[PretrainedConfig], Callable[[dict[str, str]], Tokenizer], dict[str, str], dict[str, object]
]
RECIPES: dict[str, Recipe] = {
    "bert": (BertConfig, wordpiece, BERT_SPECIAL, {}),
    "roberta": (
        RobertaConfig,
        byte_bpe,
        ROBERTA_SPECIAL,
        {"max_position_embeddings": 66, "type_vocab_size": 1},
    ),
    "xlm-roberta": (
        XLMRobertaConfig,
        unigram,
        ROBERTA_SPECIAL,
        {"max_position_embeddings": 66, "type_vocab_size": 1},
    ),
    "electra": (ElectraConfig, wordpiece, BERT_SPECIAL, {"embedding_size": 16}),
    "albert": (AlbertConfig, unigram, ALBERT_SPECIAL, {"embedding_size": 16}),
    "distilbert": (
        DistilBertConfig,
        wordpiece,
        BERT_SPECIAL,
        {
            "dim": 32,
            "n_layers": 3,
            "n_heads": 4,
            "hidden_dim": 48,
            "max_position_embeddings": 64,
        },
    ),
    "deberta-v2": (
        DebertaV2Config,
        unigram,
        BERT_SPECIAL,
        {
            "relative_attention": True,
            "position_buckets": 8,
            "pos_att_type": ["p2c", "c2p"],
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
            "type_vocab_size": 0,
            "conv_kernel_size": 3,
            "legacy": False,
        },
    ),
    "modernbert": (
        ModernBertConfig,
        byte_bpe,
        BERT_SPECIAL,
        {"local_attention": 8, "global_attn_every_n_layers": 3},
    ),
    "mpnet": (MPNetConfig, wordpiece, ROBERTA_SPECIAL, {"max_position_embeddings": 66}),
}


def make(family: str, folder: Path) -> Path:
    """Write one tiny checkpoint."""
    kind, train, special, extra = RECIPES[family]
    tokenizer = train(special)
    framed(tokenizer, special, double=special is ROBERTA_SPECIAL)
    lstrip = train is byte_bpe  # as in the real ones: their mask swallows the blank before it
    mask = AddedToken(special["mask"], lstrip=lstrip, special=True)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **{f"{name}_token": token for name, token in special.items() if name != "mask"},
        mask_token=mask,
    )
    cls, sep = fast.cls_token_id, fast.sep_token_id
    ids = {"pad_token_id": fast.pad_token_id, "bos_token_id": cls, "cls_token_id": cls}
    ids |= {"eos_token_id": sep, "sep_token_id": sep}
    sizes = {} if family == "distilbert" else SIZES
    config = kind(**{**sizes, **ids, "vocab_size": len(fast), **extra})
    config.initializer_range = SIZES["initializer_range"]
    with torch.random.fork_rng():
        torch.manual_seed(len(family))
        model = AutoModelForMaskedLM.from_config(config)
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):  # real models have biases that are not zero
                torch.nn.init.normal_(parameter, std=0.1)
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
