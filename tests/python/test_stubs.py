"""The stubs are those of the module: same names, same parameters."""

import ast
import inspect
import pathlib

import weir
import stubs

TREE = ast.parse(stubs.FILE.read_text())
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}


def test_the_stubs_are_those_of_the_list_of_commands():
    assert stubs.FILE.read_text() == stubs.stub(), "run tests/python/run --stubs"


def names(arguments):
    all_of = [*arguments.posonlyargs, *arguments.args, *([arguments.vararg] if arguments.vararg else []), *arguments.kwonlyargs]
    return [a.arg for a in all_of if a.arg != "self"]


def held(node, value):
    assert names(node.args) == list(inspect.signature(value).parameters), node.name


def test_names_and_parameters_are_those_of_the_module():
    known = {"Value", "Values"}
    for node in TREE.body:
        if isinstance(node, ast.FunctionDef):
            held(node, getattr(weir, node.name))
            known.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Name) and node.annotation.id in CLASSES:
            known.add(node.target.id)
            group(CLASSES[node.annotation.id], getattr(weir, node.target.id))
        elif isinstance(node, ast.AnnAssign):
            known.add(node.target.id)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            known.add(node.name)
            public(node, getattr(weir, node.name))
    assert set(weir.__all__) <= known


def group(node, value):
    found = set()
    for inside in node.body:
        if isinstance(inside, ast.FunctionDef) and inside.name == "__call__":
            held(inside, value)
        elif isinstance(inside, ast.FunctionDef):
            held(inside, getattr(value, inside.name))
            found.add(inside.name)
        elif isinstance(inside, ast.AnnAssign):
            group(CLASSES[inside.annotation.id], getattr(value, inside.target.id))
            found.add(inside.target.id)
    assert found == set(value._names)


def public(node, value):
    for inside in node.body:
        if isinstance(inside, ast.FunctionDef):
            member = inspect.getattr_static(value, inside.name)
            if not isinstance(member, property) and inside.name != "__init__":
                held_method(inside, member)
    inherited = {name for base in value.__mro__[1:] for name in vars(base)}
    mine = {name for name in vars(value) if not name.startswith("_")} - inherited
    stubbed = {inside.name for inside in node.body if isinstance(inside, ast.FunctionDef)}
    stubbed |= {inside.target.id for inside in node.body if isinstance(inside, ast.AnnAssign)}
    assert mine <= stubbed, node.name


def held_method(node, value):
    parameters = [n for n in inspect.signature(value).parameters if n not in ("self",)]
    assert names(node.args) + ([node.args.kwarg.arg] if node.args.kwarg else []) == parameters, node.name
