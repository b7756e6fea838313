"""One instruction of a Cortex-M: what it reads and writes, parsed from objdump's text.

Operands have the order and the roles of the Armv8-M Architecture Reference Manual (DDI 0553),
chapters C2.4 and, for MVE, C2.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

_ALIASES = {"r13": "sp", "r14": "lr", "r15": "pc", "sl": "r10", "fp": "r11", "ip": "r12"}
_NAMED = frozenset({"sp", "lr", "pc", "p0", "fpscr"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONDITIONS = _words("eq ne cs hs cc lo mi pl vs vc hi ls ge lt gt le al")

# Roles of the operands of each mnemonic. A name stands in one set only; `_ROLES` is their union.
_MAY_SET_FLAGS = _words("""
    adc add and asr bic eor lsl lsr mov mul mvn neg orn orr ror rrx rsb rsc sbc sub""")
_COMPARE = _words("cmn cmp teq tst")
_TWO_IS_THREE = _words("""
    adc add and asr bic eor lsl lsr mul orn orr ror rsb sbc sub
    vadd vand vbic veor vmul vorr vsub vrshl vshl vqshl vqrshl""")
"""Written with two operands, the first is also the first source."""
_CARRY = _words("adc sbc rrx rsc")
_SETS_GE = _words("sadd8 sadd16 ssub8 ssub16 sasx ssax uadd8 uadd16 usub8 usub16 uasx usax")
_FIRST_IS_RESULT = (
    _MAY_SET_FLAGS
    | _SETS_GE
    | _words("""
    adr addw subw movw clz rbit rev rev16 revsh sxtb sxth uxtb uxth sxtb16 uxtb16
    sxtab sxtah uxtab uxtah sxtab16 uxtab16 sbfx ubfx ssat usat ssat16 usat16
    qadd qdadd qsub qdsub qadd8 qadd16 qsub8 qsub16 qasx qsax
    shadd8 shadd16 shsub8 shsub16 shasx shsax uhadd8 uhadd16 uhsub8 uhsub16 uhasx uhsax
    uqadd8 uqadd16 uqsub8 uqsub16 uqasx uqsax pkhbt pkhtb sel
    mla mls smlabb smlabt smlatb smlatt smlawb smlawt smlad smladx smlsd smlsdx
    smmla smmlar smmls smmlsr smmul smmulr smuad smuadx smusd smusdx
    smulbb smulbt smultb smultt smulwb smulwt sdiv udiv usad8 usada8
    csel csinc csinv csneg cset csetm cinc cinv cneg mrs vmrs vmsr tt tta ttt ttat
    vabs vneg vsqrt vcvt vcvtr vcvta vcvtn vcvtp vcvtm vrinta vrintm vrintn vrintp vrintr
    vrintx vrintz vdiv vnmul vmaxnm vminnm vmaxnma vminnma vsel vseleq vselge vselgt vselvs
    vadd vsub vmul vand vbic veor vorr vorn vmvn vabd vhadd vhsub vrhadd vqadd vqsub vqabs vqneg
    vmax vmin vmaxa vmina vcls vclz vdup vrev16 vrev32 vrev64 vmulh vrmulh vqdmulh vqrdmulh
    vmullb vmullt vqdmullb vqdmullt vmovlb vmovlt vshllb vshllt vshl vshr vrshr vrshl vqshl
    vqshlu vqrshl vcadd vhcadd vcmul vpsel vbrsr vaddv vmlav vmladav vmladavx vmlsdav vmlsdavx
    """)
)
_TWO_RESULTS = _words("""
    smull umull vaddlv vmlaldav vmlaldavx vmlalv vmlsldav vmlsldavx vrmlaldavh vrmlaldavhx
    vrmlalvh vrmlsldavh vrmlsldavhx""")
_TWO_ACCUMULATORS = _words("""
    smlal smlalbb smlalbt smlaltb smlaltt smlald smlaldx smlsld smlsldx umlal umaal
    vaddlva vmlaldava vmlaldavax vmlalva vmlsldava vmlsldavax vrmlaldavha vrmlaldavhax
    vrmlalvha vrmlsldavha vrmlsldavhax
    asrl lsll lsrl sqrshrl sqshll srshrl uqrshll uqshll urshrl vshlc""")
_ACCUMULATOR = _words("""
    bfi bfc movt sqrshr sqshl srshr uqrshl uqshl urshr
    vmla vmls vnmla vnmls vfma vfms vfnma vfnms vmlas vfmas vqdmlah vqdmlash vqrdmlah vqrdmlash
    vqdmladh vqdmladhx vqrdmladh vqrdmladhx vqdmlsdh vqdmlsdhx vqrdmlsdh vqrdmlsdhx vcmla
    vmladava vmladavax vmlava vmlsdava vmlsdavax vaddva vabav
    vmaxv vminv vmaxav vminav vmaxnmv vminnmv vmaxnmav vminnmav vsli vsri vins vmovx
    vmovnb vmovnt vqmovnb vqmovnt vqmovunb vqmovunt vshrnb vshrnt vrshrnb vrshrnt
    vqshrnb vqshrnt vqrshrnb vqrshrnt vqshrunb vqshrunt vqrshrunb vqrshrunt
    vcvtb vcvtt vadc vadci vsbc vsbci""")
_COUNTING = _words("vidup vddup viwdup vdwdup")
_LOADS = _words("""
    ldr ldrb ldrh ldrsb ldrsh ldrt ldrbt ldrht ldrsbt ldrsht ldrex ldrexb ldrexh
    lda ldab ldah ldaex ldaexb ldaexh
    vldr vldrb vldrh vldrw vldrd""")
_LOADS_OF_TWO = _words("ldrd")
_STORES = _words("""
    str strb strh strt strbt strht stl stlb stlh vstr vstrb vstrh vstrw vstrd""")
_STORES_OF_TWO = _words("strd")
_STORES_WITH_RESULT = _words("strex strexb strexh stlex stlexb stlexh")
_MANY_LOADS = _words("ldm ldmia ldmdb ldmfd ldmea vldm vldmia vldmdb")
_MANY_STORES = _words("stm stmia stmdb stmfd stmea vstm vstmia vstmdb")
_POPS = _words("pop vpop")
_PUSHES = _words("push vpush")
_INTERLEAVED_LOADS = _words("vld20 vld21 vld40 vld41 vld42 vld43")
_INTERLEAVED_STORES = _words("vst20 vst21 vst40 vst41 vst42 vst43")
_BRANCHES = _words("b bx bxns")
_CALLS = _words("bl blx blxns")
_COMPARE_AND_BRANCH = _words("cbz cbnz")
_TABLE_BRANCHES = _words("tbb tbh")
_LOOP_STARTS = _words("dls dlstp wls wlstp")
_LOOP_ENDS = _words("le letp")
_NO_REGISTERS = _words("""
    nop isb dsb dmb cpsid cpsie wfi wfe sev sevl yield bkpt udf svc clrex pld pldw pli
    bti csdb esb lctp sg hlt ssbb pssbb""")
_OTHERS = _words("msr vcmp vcmpe vmov vpst vpt vpnot vctp vlldm vlstm vscclrm clrm pac aut pacbti")
_IT = re.compile(r"it[te]{0,3}")
_VPT = re.compile(r"vp(st|t)[te]{0,3}")

KNOWN = (
    (_FIRST_IS_RESULT | _COMPARE | _TWO_RESULTS | _TWO_ACCUMULATORS | _ACCUMULATOR | _COUNTING)
    | (_LOADS | _LOADS_OF_TWO | _STORES | _STORES_OF_TWO | _STORES_WITH_RESULT)
    | (_MANY_LOADS | _MANY_STORES | _POPS | _PUSHES | _INTERLEAVED_LOADS | _INTERLEAVED_STORES)
    | (_BRANCHES | _CALLS | _COMPARE_AND_BRANCH | _TABLE_BRANCHES | _LOOP_STARTS | _LOOP_ENDS)
    | (_NO_REGISTERS | _OTHERS)
)
"""Mnemonics whose reads and writes are known, beside `it` and `vpt` blocks."""

_ALL_LOADS = _LOADS | _LOADS_OF_TWO | _MANY_LOADS | _POPS | _INTERLEAVED_LOADS
_ALL_STORES = (
    _STORES | _STORES_OF_TWO | _STORES_WITH_RESULT | (_MANY_STORES | _PUSHES | _INTERLEAVED_STORES)
)
_DIRECT = _BRANCHES | _CALLS | _COMPARE_AND_BRANCH | _LOOP_ENDS | _words("wls wlstp")
_ALWAYS_BRANCH = _BRANCHES | _CALLS | _COMPARE_AND_BRANCH | _TABLE_BRANCHES | _LOOP_ENDS


@dataclass(frozen=True)
class Instruction:
    """An instruction of a program, as the core decodes it.

    `address`: bytes; `size_bytes`: 2 or 4. `mnemonic`: lower case, without condition, without the
    `s` that sets flags (then `flags` is in `writes`), without `.w` or `.n`. `data_type`: what
    follows the dot (`f32`, `s8`, `f32.s32`). `condition`: `eq` and so on, of a branch or in an IT
    block; `t` or `e` in a VPT block. `operands`: brackets, lists and shifts are kept whole.

    `reads` and `writes`: `r0`..`r12`, `sp`, `lr`, `pc`, `s0`..`s31` (a `d` register is two of
    them, a `q` register four), `flags`, `ge`, `fpscr`, `p0`. A conditional instruction reads
    `flags` (`p0` in a VPT block), and not what it may leave as it was. `target`: address to which
    a direct branch goes. Values and addresses at run time are not known here.
    """

    address: int
    size_bytes: int
    mnemonic: str
    data_type: str
    condition: str
    operands: tuple[str, ...]
    text: str
    reads: frozenset[str]
    writes: frozenset[str]
    target: int | None = None

    @property
    def end(self) -> int:
        return self.address + self.size_bytes

    @property
    def unknown(self) -> bool:
        """Whether the mnemonic is one whose reads, writes and cycles nobody has written down."""
        return self.mnemonic not in KNOWN and not self.is_it

    @property
    def is_it(self) -> bool:
        """Whether it is `it`, `itt`, `ite` ..."""
        return _IT.fullmatch(self.mnemonic) is not None

    @property
    def is_load(self) -> bool:
        return self.mnemonic in _ALL_LOADS

    @property
    def is_store(self) -> bool:
        return self.mnemonic in _ALL_STORES

    @property
    def is_branch(self) -> bool:
        """Whether it may go elsewhere than to the next instruction."""
        starts_loop = self.mnemonic in ("wls", "wlstp")
        return self.mnemonic in _ALWAYS_BRANCH or starts_loop or "pc" in self.writes

    @property
    def is_call(self) -> bool:
        """Whether it is a branch that comes back to the next instruction."""
        return self.mnemonic in _CALLS

    @property
    def is_conditional(self) -> bool:
        """Whether it may do nothing: a condition, `cbz`, `cbnz`, `wls`, `le`."""
        return bool(self.condition) or self.mnemonic in (
            _COMPARE_AND_BRANCH | _LOOP_ENDS | {"wls", "wlstp"}
        )

    @cached_property
    def registers(self) -> int:
        """Words of 32 bits that a load or a store transfers (at least 1), 0 for others."""
        if not (self.is_load or self.is_store):
            return 0
        if self.mnemonic in _STORES_WITH_RESULT:
            return 1
        if self.mnemonic in (_INTERLEAVED_LOADS | _INTERLEAVED_STORES):
            return 4
        if self.mnemonic in (_LOADS_OF_TWO | _STORES_OF_TWO):
            return 2
        for operand in self.operands:
            if operand.startswith("{"):
                return len(_registers(operand))
        return len(_registers(self.operands[0])) if self.operands else 1

    @property
    def address_operand(self) -> str | None:
        """The operand in square brackets, without `!`; None where there is none."""
        for operand in self.operands:
            if operand.startswith("["):
                return operand.rstrip("!")
        return None

    @property
    def address_registers(self) -> frozenset[str]:
        """Registers that a load's or a store's address is computed from."""
        if self.mnemonic in (_POPS | _PUSHES):
            return frozenset({"sp"})
        if self.mnemonic in (_MANY_LOADS | _MANY_STORES):
            return _registers(self.operands[0].rstrip("!"))
        bracket = self.address_operand
        if bracket is None:
            return frozenset()
        after = self.operands[self.operands.index(_whole(bracket, self.operands)) + 1 :]
        return _registers(bracket).union(*(_registers(operand) for operand in after))

    @property
    def writes_back(self) -> bool:
        """Whether a load or a store also updates its address register."""
        return bool(self.address_registers & self.writes) and (
            self.mnemonic in (_POPS | _PUSHES)
            or any(operand.endswith("!") for operand in self.operands)
            or (self.address_operand is not None and not self.operands[-1].startswith("["))
        )


def _whole(bracket: str, operands: tuple[str, ...]) -> str:
    return bracket if bracket in operands else bracket + "!"


_REGISTER = re.compile(r"\b([a-z]+\d*)\b(?:\[(\d+)\])?(?:\s*-\s*([a-z]+\d+))?")


def _one(name: str) -> tuple[str, ...]:
    name = _ALIASES.get(name, name)
    if name in _NAMED:
        return (name,)
    letter, number = name[:1], name[1:]
    if not number.isdigit():
        return ()
    index = int(number)
    if letter == "r" and index <= 12:
        return (name,)
    if letter == "s" and index <= 31:
        return (name,)
    width = {"d": 2, "q": 4}.get(letter, 0)
    return tuple(f"s{index * width + part}" for part in range(width))


def register_names(operand: str, lane_bytes: int = 4) -> tuple[str, ...]:
    """The registers named in an operand, in order.

    A lane of `lane_bytes` of a vector is the `s` register that it lies in.
    """
    registers: list[str] = []
    text = re.sub(r"#-?[\w.+-]+", "", operand.lower())
    for match in _REGISTER.finditer(text):
        first, lane, last = match.groups()
        parts = _one(first)
        if lane is not None:
            registers += parts[int(lane) * lane_bytes // 4 :][:1]
        elif last is None or not parts:
            registers += parts
        else:
            for index in range(int(first[1:]), int(last[1:]) + 1):
                registers += _one(f"{first[0]}{index}")
    return tuple(registers)


def _registers(operand: str, lane_bytes: int = 4) -> frozenset[str]:
    return frozenset(register_names(operand, lane_bytes))


_SHIFT = re.compile(r"(?:lsl|lsr|asr|ror|uxtw) #\d+|rrx")


def _split_operands(text: str) -> tuple[str, ...]:
    parts: list[str] = []
    depth = 0
    current = ""
    for character in text:
        if character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    parts.append(current.strip())
    joined: list[str] = []
    for part in parts:
        if joined and _SHIFT.fullmatch(part):
            joined[-1] += f", {part}"
        elif part:
            joined.append(part)
    return tuple(joined)


def _split_mnemonic(word: str) -> tuple[str, str, str, bool]:
    """A printed mnemonic as (mnemonic, data type, condition, whether `s` sets the flags)."""
    name, *suffixes = word.lower().split(".")
    types = ".".join(suffix for suffix in suffixes if suffix not in ("w", "n"))
    if _IT.fullmatch(name):
        return name, types, "", False
    if _VPT.fullmatch(name):
        return ("vpst" if name.startswith("vpst") else "vpt"), types, "", False
    for base, condition in _readings(name, types):
        if base in KNOWN:
            return base, types, condition, False
        if base.endswith("s") and base[:-1] in _MAY_SET_FLAGS:
            return base[:-1], types, condition, True
    return name, types, "", False


def _readings(name: str, types: str) -> Iterable[tuple[str, str]]:
    # `vmullt.f32` is vmul with the condition lt, `vmullt.s8` the vector VMULLT; `vmovlt` likewise.
    # `vcvtt` is the top half of half precision, or vcvt in a VPT block.
    scalar = types.startswith("f") or not types
    condition = name[-2:] if len(name) > 2 and name[-2:] in CONDITIONS else ""
    if name in ("vmullt", "vmovlt") and scalar:
        yield name[:-2], condition
        return
    if name == "vcvtt" and not ("f16" in types and "f32" in types):
        yield "vcvt", "t"
        return
    yield name, ""
    if condition:
        yield name[:-2], condition
    if name.startswith("v") and name[-1] in "te":
        yield name[:-1], name[-1]


_TARGET = re.compile(r"([0-9a-f]+) <")


def parse_instruction(address: int, size_bytes: int, text: str) -> Instruction:
    """The instruction that objdump prints as `text` (mnemonic, tab or blank, operands).

    A comment after `@` or `;` is dropped. A mnemonic that is not known gives an instruction whose
    `unknown` is true, with its first register written and the others read.
    """
    text = re.split(r"[@;]", text, maxsplit=1)[0].strip()
    word, _, rest = text.replace("\t", " ").partition(" ")
    mnemonic, types, condition, sets_flags = _split_mnemonic(word)
    operands = _split_operands(rest.strip())
    target = None
    if mnemonic in _DIRECT and operands:
        match = _TARGET.match(operands[-1]) or re.fullmatch(r"(?:0x)?([0-9a-f]+)", operands[-1])
        if match and not _one(operands[-1]):
            target = int(match.group(1), 16)
            operands = (*operands[:-1], f"{target:x}")
    reads, writes = _flow(mnemonic, types, operands, target is not None)
    if sets_flags or mnemonic in _COMPARE:
        writes |= {"flags"}
    if condition in ("t", "e"):
        reads |= {"p0"}
    elif condition:
        reads |= {"flags"}
    if mnemonic in _CARRY or mnemonic.startswith(("cs", "cin", "cneg")) or _IT.fullmatch(mnemonic):
        reads |= {"flags"}
    printed = f"{word} {', '.join(operands)}".strip()
    return Instruction(
        address,
        size_bytes,
        mnemonic,
        types,
        condition,
        operands,
        printed,
        frozenset(reads),
        frozenset(writes),
        target,
    )


_Flow = tuple[set[str], set[str]]


def _lane_bytes(types: str) -> int:
    digits = re.sub(r"\D", "", types.split(".")[0])
    return int(digits) // 8 if digits in ("8", "16", "32") else 4


def _flow(mnemonic: str, types: str, operands: tuple[str, ...], direct: bool) -> _Flow:
    """Registers that are read and written, without what conditions and the `s` suffix add."""
    if direct:
        operands = operands[:-1]
    lane_bytes = _lane_bytes(types)
    lists = [_registers(operand, lane_bytes) for operand in operands]
    if mnemonic in _ALL_LOADS or mnemonic in _ALL_STORES:
        return _transfer(mnemonic, operands, lists)
    if mnemonic in _ALWAYS_BRANCH or mnemonic in _LOOP_STARTS:
        return _branch(mnemonic, lists)
    if mnemonic in _NO_REGISTERS:
        return set(), set()
    if mnemonic in _OTHERS or mnemonic in ("mrs", "vmrs", "vmsr"):
        return _other(mnemonic, operands, lists, lane_bytes)
    if _IT.fullmatch(mnemonic):
        return set(), set()
    if mnemonic in _COMPARE:
        return set().union(*lists), set()
    return _arithmetic(mnemonic, operands, lists)


def _arithmetic(mnemonic: str, operands: tuple[str, ...], lists: list[frozenset[str]]) -> _Flow:
    results = 2 if mnemonic in (_TWO_RESULTS | _TWO_ACCUMULATORS | _COUNTING) else 1
    reads = set().union(*lists[results:])
    writes = set().union(*lists[:results])
    accumulates = mnemonic in (_ACCUMULATOR | _TWO_ACCUMULATORS)
    if accumulates or (mnemonic in _TWO_IS_THREE and len(operands) == 2):
        reads |= writes
    if mnemonic in _COUNTING:  # q, r, ... : the vector is a result, the count goes on
        reads |= lists[1] if len(lists) > 1 else set()
    if mnemonic in _SETS_GE:
        writes.add("ge")
    if mnemonic == "sel":
        reads.add("ge")
    if mnemonic == "vpsel":
        reads.add("p0")
    if mnemonic.startswith("vsel"):
        reads.add("flags")
    if mnemonic in ("vadc", "vadci", "vsbc", "vsbci"):
        reads -= lists[0]
        writes.add("fpscr")
        if not mnemonic.endswith("i"):
            reads.add("fpscr")
    if mnemonic == "vmovx":
        reads -= lists[0] - lists[-1]
    return reads, writes


def _transfer(mnemonic: str, operands: tuple[str, ...], lists: list[frozenset[str]]) -> _Flow:
    loads = mnemonic in _ALL_LOADS
    if mnemonic in (_POPS | _PUSHES):
        moved, base, post = set().union(*lists), {"sp"}, {"sp"}
    elif mnemonic in (_MANY_LOADS | _MANY_STORES):
        moved, base = set().union(*lists[1:]), set(lists[0])
        post = base if operands[0].endswith("!") else set()
    else:
        brackets = [at for at, operand in enumerate(operands) if operand.startswith("[")]
        at = brackets[0] if brackets else len(operands)
        moved = set().union(*lists[:at])
        base = set().union(*lists[at : at + 1])
        indexed = at < len(operands) and (operands[at].endswith("!") or len(operands) > at + 1)
        post = set(_registers(operands[at].strip("[]!").split(",")[0])) if indexed else set()
        base |= set().union(*lists[at + 1 :])
    if mnemonic in _STORES_WITH_RESULT:
        return base | set().union(*lists[1:2]), set(lists[0])
    if loads:
        partial = moved if mnemonic in _INTERLEAVED_LOADS else set()
        return base | partial, moved | post
    return base | moved, set(post)


def _branch(mnemonic: str, lists: list[frozenset[str]]) -> _Flow:
    named = set().union(*lists)
    if mnemonic in _LOOP_ENDS:
        return set(named), {"pc", *named}
    if mnemonic in _LOOP_STARTS:
        goes = {"pc"} if mnemonic.startswith("wls") else set()
        return set().union(*lists[1:]), {"lr"} | goes
    return named, {"pc", "lr"} if mnemonic in _CALLS else {"pc"}


def _other(
    mnemonic: str, operands: tuple[str, ...], lists: list[frozenset[str]], lane_bytes: int
) -> _Flow:
    named = set().union(*lists)
    status = operands[0].lower() if operands else ""
    if mnemonic == "vmov":
        first_pair = len(operands) == 4 or (len(operands) == 3 and operands[0][0] not in "dq")
        results = 2 if first_pair else 1
        writes = set().union(*lists[:results])
        inserted = lane_bytes < 4 and "[" in status
        return set().union(*lists[results:]) | (writes if inserted else set()), writes
    if mnemonic in ("vcmp", "vcmpe"):
        vector = any(operand.startswith("q") for operand in operands)
        return named, {"p0"} if vector else {"fpscr"}
    if mnemonic in ("vpt", "vctp"):
        return named, {"p0"}
    if mnemonic in ("vpst", "vpnot"):
        return {"p0"}, {"p0"}
    if mnemonic == "vmrs":
        if status.startswith("apsr"):
            return {"fpscr"}, {"flags"}
        return set().union(*lists[1:]), set(lists[0])
    if mnemonic == "vmsr":
        return set().union(*lists[1:]), set(lists[0])
    if mnemonic == "msr":
        goes = {"flags"} if status.startswith(("apsr", "cpsr", "xpsr")) else set()
        return set().union(*lists[1:]), goes
    if mnemonic == "mrs":
        comes = operands[-1].lower().startswith(("apsr", "cpsr", "xpsr"))
        return {"flags"} if comes else set(), set(lists[0])
    if mnemonic in ("vscclrm", "clrm"):
        return set(), named
    if mnemonic in ("pac", "pacbti"):
        return {"lr", "sp"}, {"r12"}
    if mnemonic == "aut":
        return {"lr", "sp", "r12"}, set()
    return named, set()
