"""Key of what a model computes: two models with the same key give the same outputs.

The key covers parameters, buffers, attributes, hooks and the code that runs: bytecode with its constants, default
arguments, closures, and the globals that the code names. Names, memory addresses and the order of sets do not affect
the key, so it is the same in another process. Code of the standard library and of LIBRARIES enters by its version.

State that a process cannot see has no key: C code of other libraries, open files, connections, names made at run time.
A model with such state raises :class:`Opaque`.
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import io
import itertools
import pickletools
import re
import struct
import sys
import threading
import types
import typing
import warnings
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fairness_audits.inputs.references import (
    UNBOUND,
    Opaque,
    impure_standard,
    library_version,
    of_library,
    pure_library,
    referred,
    replaces_library_code,
)

READERS = re.compile(
    r"builtins(\.(eval|exec|compile|__import__|open|input|globals|locals|breakpoint))?"
    r"|torch\.(load|serialization|hub|jit\.(load|_serialization)|distributed|_C\._distributed|export\.(load|pt2_archive)"
    r"|ops\.(?!(aten|prims|quantized|torchvision|torchaudio)\b)|classes|from_file|package|multiprocessing|utils\.(data|cpp_extension|model_zoo)).*"
    r"|numpy\.(load|fromfile|genfromtxt|memmap|fromregex|ctypeslib|lib\.(npyio|_npyio|format|_datasource)).*"
    r"|scipy\.(io|datasets).*|pandas\.(read_|io|HDFStore|ExcelFile).*|sklearn\.datasets.*"
    r"|(torchvision|torchaudio)\.(io|datasets|load|info|_backend).*"
)
"""Names in builtins and LIBRARIES that read files, reach other processes or do something that no code shows."""
LOOKUPS = {"getattr", "vars", "attrgetter", "methodcaller", "__dict__", "__getattribute__"}
"""Functions and attributes that look up names made at run time."""
OPERATORS = ("aten", "prim", "prims", "quantized", "torchvision", "torchaudio", "higher_order")
"""Operators of torch and its family. All others are extensions."""
ENTRIES = ("forward", "backward", "setup_context")
"""Methods that torch calls by itself."""
LIFE = (
    "__init__", "__new__", "__post_init__", "__init_subclass__", "__class_getitem__", "__del__", "__repr__", "__str__",
    "__dir__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__",
    "__copy__", "__deepcopy__", "__sizeof__", "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__",
    "__annotations__", "__firstlineno__", "__static_attributes__", "__parameters__", "__orig_bases__", "__slots__",
    "__dataclass_params__", "__dataclass_fields__", "__match_args__", "__abstractmethods__", "_abc_impl",
    "__annotations_cache__", "__annotate_func__", "__annotate__",
)  # fmt: skip
"""Class entries that enter the key only if code creates objects of the class, or never."""
UNCOUNTED = (
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
    "_non_persistent_buffers_set", "_is_full_backward_hook", "_compiled_call_impl", "call_super_init", "dump_patches",
    "_flat_weights", "_flat_weight_refs",
)  # fmt: skip
"""Attributes of a torch module that compute nothing, or that repeat its parameters."""
UNWRITTEN = (".debug_pkl", "/version", "/serialization_id", "/byteorder")
"""Files of a TorchScript archive that do not affect what it computes."""
MANGLED = re.compile(rb"[./]?___torch_mangle_\d+")


def model_key(thing: Any) -> str:
    """Return the key of what a model, a function or a value computes, as 64 hexadecimal digits.

    Parameters
    ----------
    thing : object
        A torch module (also scripted, exported or compiled), a function, a callable object, or a value of plain Python,
        NumPy, torch or scikit-learn.

    Raises
    ------
    Opaque
        If a part of the object cannot be known.

    Examples
    --------
    >>> model_key(lambda x: 2 * x) == model_key(lambda x: 2 * x)
    True
    >>> model_key(lambda x: 2 * x) == model_key(lambda x: 3 * x)
    False
    """
    named: set[Any] = set()
    memo: dict[int, tuple[Any, bytes]] = {}
    while True:
        # Methods count if code names them, and we discover code on the way. Repeat until no new name appears.
        walk = _Walk(frozenset(named), memo)
        try:
            key = walk.key(thing, "the model")
        except RecursionError as error:
            raise Opaque("the model holds objects within objects, more than can be followed") from error
        if walk.named <= named:
            return key.hex()
        named |= walk.named


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield all names and texts in code, which are what it may call, also by ``getattr``."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
        elif isinstance(constant, str):
            yield constant


class _Walk:
    """One pass over everything that an object refers to. ``named`` collects names in code and called classes.

    ``before`` is the ``named`` of the previous pass. ``memo`` has the digests of arrays.
    """

    def __init__(self, before: frozenset[Any], memo: dict[int, tuple[Any, bytes]]) -> None:
        self.before, self.memo = before, memo
        self.named: set[Any] = set()
        self.seen: dict[int, tuple[int, Any]] = {}

    def key(self, thing: Any, where: str) -> bytes:
        """Return the digest of an object; ``where`` describes its place."""
        if type(thing) in ATOMS or isinstance(thing, np.generic):
            return _digest(type(thing).__name__, _bytes(thing))
        if type(thing) is tuple:
            return _digest("tuple", *self.each(thing, where))
        if type(thing) in (set, frozenset):
            # Each element has its own walk, because the order of a set differs between processes.
            walks = [(_Walk(self.before, self.memo), one) for one in thing]
            alone = sorted(walk.key(one, where) for walk, one in walks)
            self.named = self.named.union(*(walk.named for walk, _ in walks))
            return _digest(type(thing).__name__, *alone)
        if isinstance(thing, types.CodeType):
            return self.code(thing, where)
        if isinstance(thing, type):
            self.named.add(thing)
            return self.kind(thing, where)
        return self.once(thing, where, self.object)

    def once(self, thing: Any, where: str, make: Callable[[Any, str], bytes]) -> bytes:
        """Return the digest of an object at its first occurrence, later the number of that occurrence."""
        if id(thing) in self.seen:
            return _digest("again", str(self.seen[id(thing)][0]).encode())
        self.seen[id(thing)] = (len(self.seen), thing)
        return make(thing, where)

    def kind(self, kind: type, where: str) -> bytes:
        """Return the digest of an object's class, which is what the object does once it is made."""
        return self.once(kind, where, self.type)

    def each(self, things: Iterable[Any], where: str) -> list[bytes]:
        return [self.key(one, where) for one in things]

    def space(self, values: Mapping[str, Any], where: str) -> bytes:
        """Return the digest of names with their values, independent of the order."""
        names = sorted(values)
        keys = [self.key(values[name], f"{name!r} of {where}") for name in names]
        return _digest("space", *(name.encode() for name in names), *keys)

    def object(self, thing: Any, where: str) -> bytes:
        torch = sys.modules.get("torch")
        if isinstance(thing, types.ModuleType):
            return self.module(thing, where)
        if isinstance(thing, types.FunctionType):
            return self.function(thing, where)
        if isinstance(thing, types.MethodType):
            return _digest("method", self.key(thing.__func__, where), self.key(thing.__self__, where))
        if isinstance(thing, BUILTIN):
            return self.builtin(thing, where)
        if isinstance(thing, weakref.ref):
            return _digest("weak", self.key(thing(), where))
        if isinstance(thing, LOCKS):
            return _digest("lock")
        if isinstance(thing, property):
            return _digest("property", *self.each((thing.fget, thing.fset), where))
        if isinstance(thing, (staticmethod, classmethod)):
            return _digest(type(thing).__name__, self.key(thing.__func__, where))
        if isinstance(thing, functools.partial):
            parts = self.each((thing.func, thing.args), where)
            return _digest("partial", *parts, self.space(thing.keywords, where))
        if isinstance(thing, np.ndarray):
            return self.array(thing, where)
        if isinstance(thing, np.ufunc):
            if _attribute("numpy", thing.__name__) is thing or _attribute("scipy.special", thing.__name__) is thing:
                return _digest("ufunc", thing.__name__.encode())
            raise _unknown(thing, where)
        if torch is not None:
            found = self.of_torch(torch, thing, where)
            if found is not None:
                return found
        if type(thing) is list:
            return _digest("list", *self.each(thing, where))
        if type(thing) is dict:
            # Code may depend on the order of a dictionary.
            return _digest("dict", *(self.key(one, where) for pair in thing.items() for one in pair))
        if typing.get_origin(thing) is not None or type(thing).__module__ == "typing":
            return _digest("annotation", repr(thing).encode())
        wrapped = getattr(thing, "__wrapped__", None) if type(thing).__module__ == "functools" else None
        if wrapped is not None:
            return _digest("cached", self.key(wrapped, where))
        return self.instance(thing, where)

    def code(self, code: types.CodeType, where: str) -> bytes:
        self.named |= set(_names(code))
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        table = getattr(code, "co_exceptiontable", b"")
        return _digest("code", code.co_code, table, *self.each((counts, names, code.co_consts), where))

    def function(self, function: types.FunctionType, where: str) -> bytes:
        where = f"the function {function.__name__!r}" if where == "the model" else where
        compiled = getattr(function, "_torchdynamo_orig_callable", None)
        if compiled is not None:
            return _digest("compiled", self.key(compiled, where))
        home = str(function.__globals__.get("__name__"))
        if "<" not in function.__qualname__ and of_library(home):
            return self.library(f"{home}.{function.__qualname__}", where)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        closed: dict[str, Any] = {}
        for name, cell in cells:
            try:
                closed[name] = cell.cell_contents
            except ValueError:
                closed[name] = UNBOUND
        parts = [
            self.key(function.__code__, where),
            self.key(function.__defaults__, where),
            self.space(function.__kwdefaults__ or {}, where),
            *([self.kind(closed.pop("__class__"), where)] if isinstance(closed.get("__class__"), type) else []),
            self.space(closed, where),
            self.space({k: v for k, v in vars(function).items() if k != "__wrapped__"}, where),
        ]
        for name, (home, value) in sorted(referred(function).items()):
            theirs = pure_library(home) and not replaces_library_code(value)
            parts += [name.encode(), self.library(home, where) if theirs else self.key(value, f"{name!r} in {where}")]
        return _digest("function", *parts)

    def library(self, name: str, where: str) -> bytes:
        """Return the digest of a library's name and version."""
        if not pure_library(name) or READERS.fullmatch(name):
            raise Opaque(f"{where} uses {name}, which may read what is not in the model")
        return _digest("library", name.encode(), library_version(name.partition(".")[0]).encode())

    def module(self, module: types.ModuleType, where: str) -> bytes:
        name = module.__name__
        if of_library(name):
            return self.library(name, where)
        if not str(getattr(module, "__file__", "")).endswith(".py"):
            raise Opaque(f"{where} is the module {name}, which is not Python code")
        values = {key: value for key, value in vars(module).items() if not key.startswith("__")}
        return _digest("module", self.space(values, f"the module {name}"))

    def builtin(self, thing: Any, where: str) -> bytes:
        name = getattr(thing, "__qualname__", None) or thing.__name__
        owner = getattr(thing, "__objclass__", None) or getattr(thing, "__self__", None)
        if isinstance(owner, types.ModuleType):
            owner = None
        if owner is None or isinstance(owner, type):
            home = owner.__module__ if owner is not None else thing.__module__ or "builtins"
            if not of_library(home):
                raise _compiled(f"{home}.{name}", where)
            return self.library(f"{home}.{name}", where)
        return _digest("bound", name.encode(), self.key(owner, where))

    def type(self, kind: type, where: str) -> bytes:
        home, name = kind.__module__, kind.__qualname__
        if of_library(home):
            own = {entry: value for entry, value in vars(kind).items() if replaces_library_code(value)}
            return _digest("class", self.library(f"{home}.{name}", where), self.space(own, where))
        file = str(getattr(sys.modules.get(home), "__file__", ".py"))
        if not (kind.__flags__ & HEAP and file.endswith((".py", ".pyc", "None"))):
            raise _compiled(f"{home}.{name}", where)
        parts = [self.kind(base, where) for base in kind.__bases__ if base is not object]
        for entry in sorted(vars(kind)):
            value = vars(kind)[entry]
            if isinstance(value, types.MemberDescriptorType):
                continue
            called = isinstance(value, (types.FunctionType, staticmethod, classmethod, property))
            special = entry.startswith("__") and entry.endswith("__")
            if entry in LIFE:
                wanted = kind in self.before and called
            else:
                wanted = not called or special or entry in ENTRIES or self.may_use(entry)
            inherited = any(hasattr(base, entry) for base in kind.__mro__[1:] if base is not object)
            if not (wanted or (inherited and entry not in LIFE)):
                continue
            sure = wanted and (called or special or entry in self.before)
            parts += [entry.encode(), self.perhaps(value, f"{name}.{entry}", sure)]
        return _digest("class", name.encode(), *parts)

    def may_use(self, name: str) -> bool:
        """Return whether code names this attribute, or looks up attributes by names made at run time."""
        return name in self.before or not LOOKUPS.isdisjoint(self.before)

    def perhaps(self, value: Any, where: str, sure: bool) -> bytes:
        """Return the digest of a value, or of its type if the value has no key and no code is ``sure`` to use it."""
        if sure:
            return self.key(value, where)
        seen, named = dict(self.seen), set(self.named)
        try:
            return self.key(value, where)
        except Opaque:
            self.seen, self.named = seen, named
            return _digest("unused", type(value).__qualname__.encode())

    def array(self, array: np.ndarray, where: str) -> bytes:
        parts = [type(array).__name__.encode(), array.dtype.str.encode(), repr(array.dtype).encode()]
        parts.append(str(array.shape).encode())
        if array.dtype.hasobject:
            return _digest("array", *parts, *self.each(array.ravel().tolist(), where))
        if isinstance(array, np.ma.MaskedArray):
            parts.append(np.ma.getmaskarray(array).tobytes())
        return self.held(array, lambda: _digest("array", *parts, np.ascontiguousarray(array).tobytes()))

    def held(self, thing: Any, make: Callable[[], bytes]) -> bytes:
        """Return a memoised digest."""
        if id(thing) not in self.memo:
            self.memo[id(thing)] = (thing, make())
        return self.memo[id(thing)][1]

    def of_torch(self, torch: Any, thing: Any, where: str) -> bytes | None:
        """Return the digest of a torch object, None for anything else."""
        if isinstance(thing, torch.Tensor):
            return self.tensor(torch, thing, where)
        if isinstance(thing, torch.nn.Module):
            return self.network(torch, thing, where)
        if isinstance(thing, torch.jit.ScriptFunction):
            return _scripted(torch, thing)
        if isinstance(thing, (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)):
            return _digest("torch", str(thing).encode())
        if isinstance(thing, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            if str(thing).partition(".")[0] not in OPERATORS:
                raise _compiled(f"the operator {thing}", where)
            return _digest("operator", str(thing).encode(), library_version("torch").encode())
        return None

    def tensor(self, torch: Any, tensor: Any, where: str) -> bytes:
        if tensor.is_meta:
            raise Opaque(f"{where} is a tensor without values (on the meta device)")
        if hasattr(tensor, "__tensor_flatten__"):
            names, context = tensor.__tensor_flatten__()
            inner = {name: getattr(tensor, name) for name in names}
            return _digest("tensor", self.key(type(tensor), where), self.space(inner, where), repr(context).encode())
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            raise _unknown(tensor, where)

        def made() -> bytes:
            plain = tensor.detach()
            parts = [str(plain.dtype).encode(), str(tuple(plain.shape)).encode(), str(plain.layout).encode()]
            if plain.is_quantized:
                parts += [str(plain.qscheme()).encode(), repr(torch.dequantize(plain).tolist()).encode()]
                return _digest("quantized", *parts)
            if plain.layout != torch.strided:
                plain = plain.to_dense()
            flat = plain.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
            return _digest("tensor", *parts, flat.view(torch.uint8).numpy().tobytes())

        return self.held(tensor, made)

    def network(self, torch: Any, network: Any, where: str) -> bytes:
        if isinstance(network, torch.jit.ScriptModule):
            return _scripted(torch, network)
        original = getattr(network, "_orig_mod", None)
        if original is not None:
            return _digest("compiled", self.key(original, where))
        own = {name: value for name, value in vars(network).items() if name not in UNCOUNTED}
        parts = []
        if isinstance(network, torch.fx.GraphModule):
            hooks = [name for name in own if HOOKS.search(name)]
            own = {name: own.get(name) for name in ("_parameters", "_buffers", "_modules", "training", *hooks)}
            # The guards of an exported program only check inputs.
            own["_modules"] = {name: one for name, one in own["_modules"].items() if name != "_guards_fn"}
            parts.append(network.code.encode())
            parts += self.each((node.target for node in network.graph.nodes if callable(node.target)), where)
            attributes = {str(node.target) for node in network.graph.nodes if node.op == "get_attr"}
            for name in sorted(attributes):
                value: Any = network
                for part in name.split("."):
                    value = getattr(value, part)
                parts += [name.encode(), self.key(value, f"{name!r} of {where}")]
        else:
            parts.append(self.kind(type(network), where))
        for name in sorted(own):
            value = own[name]
            if HOOKS.search(name) and isinstance(value, dict):
                # The keys number all hooks of the process.
                parts += [name.encode(), *self.each(value.values(), f"a hook of {where}")]
            elif name in ("_parameters", "_buffers"):
                parts += [name.encode(), self.space(value, where)]
            elif name == "_modules":
                # The order matters in a sequence.
                parts += [name.encode(), *(self.key(one, f"{child!r}") for child, one in value.items())]
                parts += [child.encode() for child in value]
            else:
                parts += [name.encode(), self.perhaps(value, f"{name!r} of {where}", not self.spared(network, name))]
        return _digest("network", *parts)

    def spared(self, thing: Any, name: str) -> bool:
        """Return whether no code uses this attribute: no code names it, and no inherited code might use it."""
        inherited = {kind.__qualname__ for kind in type(thing).__mro__ if pure_library(kind.__module__)}
        return not self.may_use(name) and inherited <= PLAIN

    def instance(self, thing: Any, where: str) -> bytes:
        """Return the digest of other objects: attributes if the class is Python code, otherwise the pickle state."""
        kind = type(thing)
        if impure_standard(kind.__module__):
            raise _unknown(thing, where)
        plain = all(one in (object, *BASES) or one.__flags__ & HEAP for one in kind.__mro__)
        if plain and not pure_library(kind.__module__):
            values = dict(getattr(thing, "__dict__", {}))
            slots = copyreg._slotnames(kind)  # type: ignore[attr-defined]
            values |= {slot: getattr(thing, slot) for slot in slots if hasattr(thing, slot)}
            parts = [self.kind(kind, where)]
            for name in sorted(values):
                sure = not self.spared(thing, name)
                parts += [name.encode(), self.perhaps(values[name], f"{name!r} of {where}", sure)]
            base: Any
            for base in BASES:
                if isinstance(thing, base):
                    parts.append(self.key([*dict.items(thing)] if base is dict else base(thing), where))
            return _digest("object", *parts)
        try:
            reduce = copyreg.dispatch_table.get(kind)
            made: Any = thing.__reduce_ex__(4) if reduce is None else reduce(thing)
        except Exception as error:
            raise _unknown(thing, where) from error
        if isinstance(made, str):
            return self.library(f"{kind.__module__}.{made}", where)
        make, arguments, *rest = (list(one) if isinstance(one, Iterator) else one for one in made)
        parts = self.each((make, arguments), where)
        state: Any
        for state in rest:
            named = isinstance(state, dict) and all(isinstance(name, str) for name in state)
            parts.append(self.space(state, where) if named else self.key(state, where))
        return _digest("object", *parts)


ATOMS = (type(None), type(Ellipsis), type(NotImplemented), bool, int, float, complex, str, bytes, bytearray, range)
BASES = (list, dict, set, frozenset, tuple, int, float, str, bytes)
"""Built-in classes whose content is a value."""
PLAIN = {"object", "Module", "Sequential", "ModuleList", "ModuleDict", "Generic", "Protocol", "ABC", "Enum"}
"""Library classes that call no attribute of an object except its modules."""
HOOKS = re.compile(r"_hooks(_with_kwargs|_always_called)?$")
BUILTIN = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
LOCKS = (type(threading.Lock()), type(threading.RLock()))
HEAP = 1 << 9
"""Flag of a class created by Python code, not by a compiled library."""


def _bytes(atom: Any) -> bytes:
    if type(atom) is float:
        return struct.pack("<d", atom)
    if type(atom) is complex:
        return struct.pack("<dd", atom.real, atom.imag)
    if isinstance(atom, np.generic):
        return atom.dtype.str.encode() + atom.tobytes()
    if isinstance(atom, str):
        return atom.encode("utf-8", "surrogatepass")
    return bytes(atom) if isinstance(atom, (bytes, bytearray)) else repr(atom).encode()


def _digest(kind: str, *parts: bytes) -> bytes:
    """Return the SHA-256 of parts, with their lengths as separators."""
    found = hashlib.sha256(kind.encode())
    for part in parts:
        found.update(struct.pack("<Q", len(part)))
        found.update(part)
    return found.digest()


def _unknown(thing: Any, where: str) -> Opaque:
    kind = type(thing)
    return Opaque(f"{where} is an object of type {kind.__module__}.{kind.__qualname__}, whose state cannot be known")


def _compiled(name: str, where: str) -> Opaque:
    return Opaque(f"{where} is {name}, compiled code that cannot be looked into")


def _attribute(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, None)


def _scripted(torch: Any, thing: Any) -> bytes:
    """Return the digest of a TorchScript archive: code, constants and values, independent of class names."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(thing, buffer)
    with zipfile.ZipFile(buffer) as archive:
        names = [name for name in archive.namelist() if not name.endswith(UNWRITTEN)]
        entries = [(name.partition("/")[2].encode(), _spelled(name, archive.read(name))) for name in names]
    plain = sorted((MANGLED.sub(b"", name), content) for name, content in entries)
    for operator in re.findall(rb"\bops\.(\w+)\.", b"".join(content for name, content in plain if name[-3:] == b".py")):
        if operator.decode() not in OPERATORS:
            raise _compiled(f"the operator {operator.decode()}", "a part of the scripted network")
    return _digest("script", library_version("torch").encode(), *(part for pair in plain for part in pair))


def _spelled(name: str, content: bytes) -> bytes:
    """Return a TorchScript archive's file without process-dependent details: numbers in names, order of constants."""
    if name.endswith(".pkl"):  # as text, which does not contain the lengths of names
        words = (f"{code.name} {argument!r}" for code, argument, _ in pickletools.genops(content))
        return MANGLED.sub(b"", "\n".join(words).encode())
    if name.endswith(".py"):
        parts = itertools.groupby(MANGLED.sub(b"", content).splitlines(), lambda line: b" : Final[" in line)
        return b"\n".join(line for final, lines in parts for line in (sorted(lines) if final else lines))
    return content
