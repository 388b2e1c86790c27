// Makes @huggingface/jinja render chat templates as llama.cpp's own engine does, whose syntax tree
// is that of this package. Appended to index.cjs of the package, whose classes are therefore in
// scope; nothing of the package is copied or edited. What is replaced, and why:
//   tokenize()       the package does not know where in the template a token is (needed for "line
//                    N"), and strips other whitespace (U+00A0, \r\n)
//   filters, methods and tests: llama.cpp has others, and prints values as Python does
// render() and fill() are the entries. docs/templates.md says what equals llama-server.

// --- positions -------------------------------------------------------------------------------

class TemplateError extends Error {}

// Memory or stack is used up: not an error of the template's syntax.
const isLimit = (error) =>
  !(error instanceof Error) || error.name === "InternalError" || (error instanceof RangeError && /stack/.test(error.message));

// The offset of the last token that the parser has read: where a syntax error is.
let readOffset = 0;
const tracked = (tokens) =>
  new Proxy(tokens, {
    get(list, key) {
      const value = Reflect.get(list, key);
      if (value instanceof Token) readOffset = value.offset;
      return value;
    },
  });

// Each node gets the offset of the last token read before it was made. A class calls the
// constructor of its prototype, so that a function in between sees every node.
const TrackedStatement = function () {
  const node = Reflect.construct(Statement, [], new.target);
  node.offset = readOffset;
  return node;
};
TrackedStatement.prototype = Statement.prototype;
for (const Node of [Program, If, For, Break, Continue, SetStatement, Macro, Comment, Expression,
                    FilterStatement, CallStatement])
  Object.setPrototypeOf(Node, TrackedStatement);

const lineOf = (source, offset) => source.slice(0, offset).split("\n").length;

// --- tokens ----------------------------------------------------------------------------------

const SPACES = " \t\r\n\v\f";
const STRIPPED = " \t\r\n";
const escapes = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", v: "\v", "'": "'", '"': '"', "\\": "\\" };
const OPERATORS = ["{%", "%}", "{{", "}}", "(", ")", "{", "}", "[", "]", ",", ".", ":", "|", "<=",
                   ">=", "==", "!=", "<", ">", "+", "-", "~", "**", "*", "//", "/", "%", "="];
const operatorTypes = new Map(ORDERED_MAPPING_TABLE);

function stripStart(text, chars) {
  let at = 0;
  while (at < text.length && chars.includes(text[at])) ++at;
  return text.slice(at);
}
function stripEnd(text, chars) {
  let end = text.length;
  while (end > 0 && chars.includes(text[end - 1])) --end;
  return text.slice(0, end);
}

// With trim_blocks and lstrip_blocks.
function tokens_of(source) {
  const tokens = [];
  let at = 0, depth = 0;
  const push = (value, type, offset) => {
    const token = new Token(value, type);
    token.offset = offset;
    tokens.push(token);
  };
  const fail = (message, offset) => {
    readOffset = offset;
    throw new TemplateError(message);
  };
  while (at < source.length) {
    const last = tokens.at(-1)?.type;
    if (last === undefined || last === "CloseStatement" || last === "CloseExpression" || last === "Comment") {
      const begin = at;
      while (at < source.length && !(source[at] === "{" && "%{#".includes(source[at + 1] ?? "x"))) ++at;
      let text = source.slice(begin, at);
      const opens = at < source.length ? source[at + 1] : "";
      const closed = source.slice(Math.max(0, begin - 3), begin);
      if (opens === "%" || opens === "#") {
        const bare = stripEnd(text, " \t\r\v\f");
        if (bare === "" ? begin === 0 || source[begin - 1] === "\n" : bare.endsWith("\n")) text = bare;
      }
      if (begin > 2 && /[#%-]}$/.test(closed) && text.startsWith("\n")) text = text.slice(1);
      if (begin > 3 && /^-[#%}]}$/.test(closed)) text = stripStart(text, STRIPPED);
      if (opens && source[at + 2] === "-") text = stripEnd(text, STRIPPED);
      if (text !== "") push(text, "Text", begin + source.slice(begin, at).indexOf(text));
      if (at >= source.length) break;
    }
    if (source.startsWith("{#", at)) {
      const end = source.indexOf("#}", at + 2);
      if (end < 0) fail("the comment is not closed with #}", at);
      push(source.slice(at + 2, end), "Comment", at);
      at = end + 2;
      continue;
    }
    const previous = tokens.at(-1)?.type;
    if (source[at] === "-" && (previous === "OpenStatement" || previous === "OpenExpression")) ++at;
    while (at < source.length && SPACES.includes(source[at])) ++at;
    if (at >= source.length) break;
    const char = source[at], begin = at;
    const closes = char === "-" && (source.startsWith("-%}", at) || source.startsWith("-}}", at));
    if (closes) {
      push(source.slice(at + 1, at + 3), source[at + 1] === "%" ? "CloseStatement" : "CloseExpression", at);
      at += 3;
      continue;
    }
    const number = () => {
      const digits = /^[0-9]+(\.[0-9]+)?/.exec(source.slice(at, at + 400));
      at += digits ? digits[0].length : 0;
      return digits ? digits[0] : "";
    };
    if ((char === "-" || char === "+") &&
        !["Identifier", "NumericLiteral", "StringLiteral", "CloseParen", "CloseSquareBracket"].includes(previous)) {
      ++at;
      const digits = number();
      push(char + digits, digits ? "NumericLiteral" : "UnaryOperator", begin);
      continue;
    }
    const operator = OPERATORS.find((text) => source.startsWith(text, at) && !(text === "}}" && depth > 0));
    if (operator) {
      push(operator, operatorTypes.get(operator), begin);
      at += operator.length;
      if (operator === "{{") depth = 0;
      if (operator === "{") ++depth;
      if (operator === "}") --depth;
      continue;
    }
    if (char === "'" || char === '"') {
      let text = "";
      for (++at; source[at] !== char; ++at) {
        if (at >= source.length) fail("the string is not closed with " + char, begin);
        if (source[at] !== "\\") text += source[at];
        else if (Object.hasOwn(escapes, source[++at] ?? "")) text += escapes[source[at]];
        else fail("unknown escape sequence \\" + (source[at] ?? ""), at);
      }
      ++at;
      push(text, "StringLiteral", begin);
    } else if (/[0-9]/.test(char)) {
      push(number(), "NumericLiteral", begin);
    } else if (/\w/.test(char)) {
      while (at < source.length && /\w/.test(source[at])) ++at;
      push(source.slice(begin, at), "Identifier", begin);
    } else {
      fail("unexpected character " + char, at);
    }
  }
  return tests_as_filters(without_generation(tokens));
}

// {% generation %} marks the answer for training; it has no effect.
function without_generation(tokens) {
  return tokens.filter((token, at) => {
    const tag = (i) => tokens[i]?.type === "OpenStatement" && tokens[i + 2]?.type === "CloseStatement" &&
                       /^(end)?generation$/.test(tokens[i + 1]?.value ?? "");
    return !tag(at) && !tag(at - 1) && !tag(at - 2);
  });
}

const WITH_ARGUMENT = new Set(["eq", "equalto", "ne", "gt", "greaterthan", "ge", "lt", "lessthan", "le", "in", "sameas", "divisibleby"]);

// The parser knows no tests with arguments. `x is [not] name(...)` becomes the filter
// `x | is_name(...)`, which binds as tightly.
function tests_as_filters(tokens) {
  const out = [];
  const word = (i, text) => tokens[i]?.type === "Identifier" && (text === undefined || tokens[i].value === text);
  const opens = new Set(["OpenParen", "OpenSquareBracket", "OpenCurlyBracket"]);
  const closes = new Set(["CloseParen", "CloseSquareBracket", "CloseCurlyBracket"]);
  const past = (i) => {  // behind the bracket that closes the one at i
    for (let depth = 0; i < tokens.length; ++i) {
      if (opens.has(tokens[i].type)) ++depth;
      if (closes.has(tokens[i].type) && --depth === 0) return i + 1;
    }
    return i;
  };
  // Behind the argument without parentheses that begins at i, or i if there is none.
  const pastArgument = (i, test) => {
    const begins = tokens[i]?.type === "Identifier"
      ? WITH_ARGUMENT.has(test) && !["and", "or", "if", "else", "is", "in"].includes(tokens[i].value)
      : ["StringLiteral", "NumericLiteral", "OpenSquareBracket", "OpenCurlyBracket"].includes(tokens[i]?.type);
    if (!begins) return i;
    i = opens.has(tokens[i].type) ? past(i) : i + 1;
    for (;;) {
      if (tokens[i]?.type === "Dot") i += 2;
      else if (tokens[i]?.type === "OpenSquareBracket" || tokens[i]?.type === "OpenParen") i = past(i);
      else return i;
    }
  };
  for (let i = 0; i < tokens.length; ++i) {
    if (word(i, "is")) {
      const name = word(i + 1, "not") ? i + 2 : i + 1;
      const end = word(name) ? pastArgument(name + 1, tokens[name].value) : name + 1;
      if (word(name) && (end > name + 1 || tokens[name + 1]?.type === "OpenParen")) {
        const pipe = new Token("|", "Pipe");
        const filter = new Token((name === i + 2 ? "is not " : "is ") + tokens[name].value, "Identifier");
        pipe.offset = filter.offset = tokens[name].offset;
        out.push(pipe, filter);
        i = name;
        if (end === name + 1) continue;
        const [open, close] = [new Token("(", "OpenParen"), new Token(")", "CloseParen")];
        open.offset = close.offset = filter.offset;
        out.push(open, ...tests_as_filters(tokens.slice(name + 1, end)), close);
        i = end - 1;
        continue;
      }
    }
    out.push(tokens[i]);
  }
  return out;
}

// --- what a template uses ----------------------------------------------------------------------

// While the template is probed (abilities()): the values that it used, and how.
let usage;
class Usage {
  used = new Set();
  accesses = new Map();
  access(value, how) {
    this.used.add(value);
    if (!this.accesses.has(value)) this.accesses.set(value, new Set());
    this.accesses.get(value).add(how);
  }
}

// --- values ----------------------------------------------------------------------------------

const text = (value) => new StringValue(value);
const integer = (value) => new IntegerValue(value);
const bool = (value) => new BooleanValue(value);
const list = (values) => new ArrayValue(values);
const none = () => new NullValue();
const undef = () => new UndefinedValue();
const truth = (value) => value.__bool__().value;

const isText = (v) => v instanceof StringValue;
const isInteger2 = (v) => v instanceof IntegerValue;
const isNumber = (v) => v instanceof IntegerValue || v instanceof FloatValue;
const isList = (v) => v instanceof ArrayValue;
const isObject = (v) => v instanceof ObjectValue || v instanceof NamespaceValue;
const isNone = (v) => v instanceof NullValue;
const isUndefined = (v) => v instanceof UndefinedValue;

const NAMES = new Map([["IntegerValue", "Integer"], ["FloatValue", "Float"], ["StringValue", "String"],
  ["BooleanValue", "Boolean"], ["ArrayValue", "Array"], ["TupleValue", "Tuple"], ["ObjectValue", "Object"],
  ["NamespaceValue", "Namespace"], ["FunctionValue", "Function"], ["NullValue", "None"],
  ["UndefinedValue", "Undefined"], ["KeywordArgumentsValue", "KeywordArguments"]]);
const typeName = (v) => NAMES.get(v.type) ?? v.type;

// In JSON: all digits.
function floatJson(number) {
  if (Number.isInteger(number) && Math.abs(number) < 1e16) return number.toFixed(1);
  return String(number);
}
// Elsewhere at most six digits behind the point, as std::to_string() writes them.
function floatText(number) {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "nan" : number > 0 ? "inf" : "-inf";
  if (Math.abs(number) >= 1e21) return BigInt(number) + ".0";
  return number.toFixed(6).replace(/(\.\d+?)0+$/, "$1");
}

// How a value is printed: as Python does; in a list or an object, texts in quotes.
function printed(value, inside = false) {
  if (isText(value)) {
    if (!inside) return value.value;
    const quote = value.value.includes("'") && !value.value.includes('"') ? '"' : "'";
    return quote + value.value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\t", "\\t")
      .replaceAll("\r", "\\r").replaceAll(quote, "\\" + quote) + quote;
  }
  if (value instanceof FloatValue) return floatText(value.value);
  if (isInteger2(value)) return value.digits ?? String(value.value);
  if (value instanceof BooleanValue) return value.value ? "True" : "False";
  if (isNone(value)) return "None";
  if (isUndefined(value)) return "";
  if (value instanceof TupleValue) return "(" + value.value.map((v) => printed(v, true)).join(", ") + (value.value.length === 1 ? ",)" : ")");
  if (isList(value)) return "[" + value.value.map((v) => printed(v, true)).join(", ") + "]";
  if (isObject(value))
    return "{" + [...value.value].map(([key, v]) => printed(text(key), true) + ": " + printed(v, true)).join(", ") + "}";
  throw new TemplateError("a " + typeName(value) + " cannot be printed");
}
// In the output, the items of a list follow each other, and an object is not printed.
function output(value) {
  if (isList(value)) return value.value.map(output).join("");
  if (isObject(value) || isNone(value) || isUndefined(value) || value instanceof FunctionValue) return "";
  return printed(value);
}
for (const Value of [IntegerValue, FloatValue, BooleanValue, ArrayValue, TupleValue, ObjectValue, NamespaceValue, NullValue, UndefinedValue, FunctionValue])
  Value.prototype.toString = function () { return output(this); };

function json(value, indent, separators, sorted, ascii, depth = 0) {
  usage?.used.add(value);
  const inner = (v) => json(v, indent, separators, sorted, ascii, depth + 1);
  const quoted = (s) => {
    const out = JSON.stringify(s);
    return ascii ? out.replace(/[\x7f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")) : out;
  };
  const block = (open, items, close) => {
    if (items.length === 0) return open + close;
    if (indent < 0) return open + items.join(separators[0]) + close;
    const pad = (n) => "\n" + " ".repeat(indent * n);
    return open + pad(depth + 1) + items.join(separators[0] + pad(depth + 1)) + pad(depth) + close;
  };
  if (isText(value)) return quoted(value.value);
  if (value instanceof FloatValue) return floatJson(value.value);
  if (isInteger2(value)) return value.digits ?? String(value.value);
  if (value instanceof BooleanValue) return value.value ? "true" : "false";
  if (isNone(value) || isUndefined(value)) return "null";
  if (isList(value)) return block("[", value.value.map(inner), "]");
  if (isObject(value)) {
    let entries = [...value.value];
    if (sorted) entries = entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return block("{", entries.map(([key, v]) => quoted(key) + separators[1] + inner(v)), "}");
  }
  throw new TemplateError("a " + typeName(value) + " has no JSON");
}

function equal(a, b) {
  if (isNumberLike(a) && isNumberLike(b)) return Number(a.value) === Number(b.value);
  if (isList(a) && isList(b)) return a.value.length === b.value.length && a.value.every((v, i) => equal(v, b.value[i]));
  if (isObject(a) && isObject(b))
    return a.value.size === b.value.size && [...a.value].every(([key, v]) => b.value.has(key) && equal(v, b.value.get(key)));
  if ((isNone(a) && isNone(b)) || (isUndefined(a) && isUndefined(b))) return true;
  return a.type === b.type && a.value === b.value;
}
const isNumberLike = (v) => isNumber(v) || v instanceof BooleanValue;

function compare(a, b) {
  if (isNumberLike(a) && isNumberLike(b)) return Number(a.value) - Number(b.value);
  if (isText(a) && isText(b)) return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
  throw new TemplateError("cannot compare " + typeName(a) + " with " + typeName(b));
}

// --- filters, methods and tests ---------------------------------------------------------------

// Each takes (value, args): args.at(i, name) is the positional or keyword argument, or undefined.
class Arguments {
  constructor(positional, named) { this.positional = positional; this.named = named; }
  at(index, name) { return this.positional[index] ?? this.named.get(name); }
  text(index, name) {
    const value = this.at(index, name);
    if (value !== undefined && !isText(value)) throw new TemplateError("a text is expected as argument, not " + typeName(value));
    return value?.value;
  }
  integer(index, name) {
    const value = this.at(index, name);
    if (value !== undefined && !isInteger2(value)) throw new TemplateError("an integer is expected as argument, not " + typeName(value));
    return value?.value;
  }
  flag(index, name) { const value = this.at(index, name); return value !== undefined && truth(value); }
}

const tojson = (value, args) => {
  const indent = args.at(1, "indent") ?? args.named.get("indent");
  const width = indent !== undefined && isInteger2(indent) ? indent.value : -1;
  const given = args.at(2, "separators");
  const separators = given !== undefined && isList(given) ? given.value.map((part) => printed(part)) : [];
  return text(json(value, width, [separators[0] ?? (width < 0 ? ", " : ","), separators[1] ?? ": "],
                   args.flag(3, "sort_keys"), args.flag(0, "ensure_ascii")));
};
const otherwise = (value, args) => {
  const missing = args.flag(1, "boolean") ? !truth(value) : isUndefined(value) || isNone(value);
  return missing ? args.at(0, "default_value") ?? text("") : value;
};

const attribute = (item, name) => {
  if (isInteger2(name)) return isList(item) ? item.value.at(name.value) : undefined;
  return isObject(item) ? item.value.get(name.value) : undefined;
};

const TESTS = new Map(Object.entries({
  boolean: (v) => v instanceof BooleanValue,
  callable: (v) => v instanceof FunctionValue,
  odd: (v) => whole(v) % 2 !== 0,
  even: (v) => whole(v) % 2 === 0,
  false: (v) => v instanceof BooleanValue && !v.value,
  true: (v) => v instanceof BooleanValue && v.value,
  divisibleby: (v, by) => whole(v) % whole(by) === 0,
  string: isText,
  integer: isInteger2,
  float: (v) => v instanceof FloatValue,
  number: isNumber,
  iterable: (v) => isList(v) || isText(v) || isObject(v) || isUndefined(v),
  sequence: (v) => isList(v) || isText(v) || isObject(v) || isUndefined(v),
  mapping: isObject,
  lower: (v) => isText(v) && v.value === lower(v.value),
  upper: (v) => isText(v) && v.value === upper(v.value),
  none: isNone,
  defined: (v) => !isUndefined(v),
  undefined: isUndefined,
  eq: equal, equalto: equal, "==": equal,
  ne: (a, b) => !equal(a, b), "!=": (a, b) => !equal(a, b),
  ge: (a, b) => compare(a, b) >= 0, gt: (a, b) => compare(a, b) > 0, greaterthan: (a, b) => compare(a, b) > 0,
  le: (a, b) => compare(a, b) <= 0, lt: (a, b) => compare(a, b) < 0, lessthan: (a, b) => compare(a, b) < 0,
  in: (v, within) => member(v, within),
  sameas: (a, b) => a === b || (a.type === b.type && !isList(a) && !isObject(a) && a.value === b.value),
  test: (v) => TESTS.has(v.value),
  filter: (v) => isText(v) && Object.values(BUILTINS).some((table) => table.has(v.value)),
}));
const whole = (v) => {
  if (!isInteger2(v)) throw new TemplateError("an integer is expected, not " + typeName(v));
  return v.value;
};
function testOf(name) {
  const test = TESTS.get(name);
  if (test === undefined) throw new TemplateError("unknown test '" + name + "'");
  return test;
}

function member(value, within) {
  if (isUndefined(within)) return false;
  if (isList(within)) return within.value.some((v) => equal(v, value));
  if (isText(within)) return isText(value) && within.value.includes(value.value);
  if (isObject(within)) return isText(value) && within.value.has(value.value);
  throw new TemplateError("'in' is not possible for " + typeName(within));
}

// llama.cpp changes the case of ASCII letters only.
const upper = (s) => s.replace(/[a-z]/g, (c) => c.toUpperCase());
const lower = (s) => s.replace(/[A-Z]/g, (c) => c.toLowerCase());
const strip = (value, args, start, end) => {
  const chars = args.text(0, "chars") ?? " \t\n\r\v\f";
  let s = value.value;
  if (start) s = stripStart(s, chars);
  if (end) s = stripEnd(s, chars);
  return text(s);
};
// llama.cpp counts and cuts the bytes of a text.
function encoded(s) {
  const out = [];
  for (const char of s) {
    const code = char.codePointAt(0);
    if (code < 0x80) out.push(code);
    else if (code < 0x800) out.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000) out.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else out.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }
  return out;
}
function decoded(bytes) {
  let out = "";
  for (let i = 0; i < bytes.length; ++i) {
    const lead = bytes[i], more = lead < 0x80 ? 0 : lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : -1;
    const tail = bytes.slice(i + 1, i + 1 + more);
    if (more < 0 || tail.length < more || tail.some((byte) => (byte & 0xc0) !== 0x80)) {
      out += "\ufffd";  // half of a character
      continue;
    }
    out += String.fromCodePoint(tail.reduce((code, byte) => (code << 6) | (byte & 63), more === 0 ? lead : lead & (0x3f >> more)));
    i += more;
  }
  return out;
}
const bytes = (s) => encoded(s).length;

const select = (keep, byAttribute) => (value, args) => {
  const [first, second, third] = args.positional;
  const test = (item) => {
    if (byAttribute) {
      if (!isObject(item)) throw new TemplateError("the items are not objects");
      const v = item.value.get(first.value) ?? undef();
      return second === undefined ? truth(v) : testOf(second.value)(v, third);
    }
    return first === undefined ? truth(item) : testOf(first.value)(item, second);
  };
  return list(value.value.filter((item) => test(item) === keep));
};

const slices = (values, start, stop, step) => {
  const out = [];
  const size = values.length;
  if (step === 0) throw new TemplateError("the step of a slice cannot be zero");
  const clamp = (n, low, high) => Math.min(Math.max(n < 0 ? size + n : n, low), high);
  if (step > 0) {
    const end = stop === undefined ? size : clamp(stop, 0, size);
    for (let i = start === undefined ? 0 : clamp(start, 0, size); i < end; i += step) out.push(values[i]);
  } else {
    const end = stop === undefined ? -1 : clamp(stop, -1, size - 1);
    for (let i = start === undefined ? size - 1 : clamp(start, -1, size - 1); i > end; i += step) out.push(values[i]);
  }
  return out;
};

const common = { default: otherwise, d: otherwise, tojson };
const table = (entries) => new Map(Object.entries({ ...common, ...entries }));
const items = (v) => list([...v.value].map(([key, item]) => new TupleValue([text(key), item])));
const BUILTINS = {
  IntegerValue: table({
    abs: (v) => integer(Math.abs(v.value)),
    int: (v) => v,
    float: (v) => new FloatValue(v.value),
    string: (v) => text(printed(v)),
    round: (v) => v,
  }),
  FloatValue: table({
    abs: (v) => new FloatValue(Math.abs(v.value)),
    int: (v) => integer(Math.trunc(v.value)),
    float: (v) => v,
    string: (v) => text(floatJson(v.value)),
    round: (v, args) => { const by = 10 ** (args.integer(0, "precision") ?? 0); return new FloatValue(Math.round(v.value * by) / by); },
  }),
  BooleanValue: table({
    int: (v) => integer(v.value ? 1 : 0),
    float: (v) => new FloatValue(v.value ? 1 : 0),
    string: (v) => text(printed(v)),
  }),
  StringValue: table({
    upper: (v) => text(upper(v.value)),
    lower: (v) => text(lower(v.value)),
    title: (v) => text(lower(v.value).replace(/(^|\s)([a-z])/g, (_, before, c) => before + c.toUpperCase())),
    capitalize: (v) => text(upper(v.value.slice(0, 1)) + lower(v.value.slice(1))),
    strip: (v, args) => strip(v, args, true, true),
    lstrip: (v, args) => strip(v, args, true, false),
    rstrip: (v, args) => strip(v, args, false, true),
    length: (v) => integer(bytes(v.value)),
    count: (v) => integer(bytes(v.value)),
    startswith: (v, args) => bool(v.value.startsWith(args.text(0))),
    endswith: (v, args) => bool(v.value.endsWith(args.text(0))),
    split: (v, args) => list(split(v.value, args.text(0) ?? " ", args.integer(1) ?? -1).map(text)),
    rsplit: (v, args) => list(rsplit(v.value, args.text(0) ?? " ", args.integer(1) ?? -1).map(text)),
    replace: (v, args) => {
      const old = args.text(0), by = args.text(1), count = args.integer(2, "count") ?? -1;
      if (count < 0) return text(v.value.split(old).join(by));
      return text(split(v.value, old, count).join(by));
    },
    int: (v, args) => {
      const base = args.integer(1, "base") ?? 10;
      const number = Number.parseInt(v.value, base);
      return Number.isNaN(number) ? args.at(0, "default") ?? integer(0) : integer(number);
    },
    float: (v, args) => {
      const number = Number.parseFloat(v.value);
      return Number.isNaN(number) ? args.at(0, "default") ?? new FloatValue(0) : new FloatValue(number);
    },
    string: (v) => v,
    safe: (v) => v,
    default: (v, args) => (args.flag(1, "boolean") && !truth(v) ? args.at(0, "default_value") ?? text("") : v),
    indent: (v, args) => {
      const pad = " ".repeat(args.integer(0, "width") ?? 4), first = args.flag(1, "first"), blank = args.flag(2, "blank");
      return text(v.value.split("\n").map((line, i) => ((i === 0 && !first) || (line === "" && !blank) ? line : pad + line)).join("\n"));
    },
    join: (v, args) => text([...v.value].join(args.text(0, "d") ?? "")),
    list: (v) => list([...v.value].map(text)),
    first: (v) => (v.value === "" ? undef() : text([...v.value][0])),
    last: (v) => (v.value === "" ? undef() : text([...v.value].at(-1))),
    reverse: (v) => text([...v.value].reverse().join("")),
    format: (v, args) => {
      let at = 0;
      return text(v.value.replace(/\{(\}?)/g, (_, end) => {
        const value = args.positional[at++];
        if (end === "") throw new TemplateError("only '{}' is known as a place in format()");
        if (value === undefined || isUndefined(value)) throw new TemplateError("a value for '{}' in format() is missing");
        return printed(value);
      }));
    },
  }),
  ArrayValue: table({
    list: (v) => list(v.value.slice()),
    first: (v) => v.value[0] ?? undef(),
    last: (v) => v.value.at(-1) ?? undef(),
    length: (v) => integer(v.value.length),
    count: (v) => integer(v.value.length),
    selectattr: select(true, true), rejectattr: select(false, true),
    select: select(true, false), reject: select(false, false),
    join: (v, args) => {
      const name = args.at(1, "attribute");
      const parts = v.value.map((item) => (name === undefined ? item : attribute(item, name) ?? item));
      if (!parts.every((part) => isText(part) || isNumber(part)))
        throw new TemplateError("join is possible for texts and numbers only");
      return text(parts.map((part) => printed(part)).join(args.text(0, "d") ?? ""));
    },
    string: (v) => text(printed(v)),
    map: (v, args) => {
      const name = args.named.get("attribute");
      if (name === undefined) {
        const filter = args.text(0);
        return list(v.value.map((item) => builtin(item, filter)(item, new Arguments(args.positional.slice(1), args.named))));
      }
      const fallback = args.named.get("default") ?? undef();
      return list(v.value.map((item) => attribute(item, name) ?? fallback));
    },
    append: (v, args) => { v.value.push(args.positional[0]); return v; },
    pop: (v, args) => v.value.splice(args.integer(0) ?? -1, 1)[0] ?? undef(),
    sort: (v, args) => {
      const sign = args.flag(0, "reverse") ? -1 : 1, name = args.at(2, "attribute");
      const key = (item) => (name === undefined ? item : attribute(item, name) ?? undef());
      return list(v.value.slice().sort((a, b) => sign * compare(key(a), key(b))));
    },
    reverse: (v) => list(v.value.slice().reverse()),
    unique: (v) => list(v.value.filter((item, i) => v.value.findIndex((other) => equal(other, item)) === i)),
    min: (v) => v.value.reduce((a, b) => (compare(b, a) < 0 ? b : a)),
    max: (v) => v.value.reduce((a, b) => (compare(b, a) > 0 ? b : a)),
    sum: (v) => v.value.reduce((a, b) => (a instanceof FloatValue || b instanceof FloatValue ? new FloatValue(a.value + b.value) : integer(a.value + b.value)), integer(0)),
  }),
  ObjectValue: table({
    get: (v, args) => v.value.get(args.text(0)) ?? args.positional[1] ?? none(),
    keys: (v) => list([...v.value.keys()].map(text)),
    values: (v) => list([...v.value.values()]),
    items,
    string: (v) => text(printed(v)),
    length: (v) => integer(v.value.size),
    list: (v) => list([...v.value.keys()].map(text)),
    dictsort: (v, args) => {
      const sign = args.flag(2, "reverse") ? -1 : 1, index = args.text(1, "by") === "value" ? 1 : 0;
      return list(items(v).value.sort((a, b) => sign * compare(a.value[index], b.value[index])));
    },
  }),
  NullValue: table({
    string: () => text("None"), safe: () => text("None"), strip: () => text("None"),
    items: () => list([]), map: () => list([]), reject: () => list([]), rejectattr: () => list([]),
    select: () => list([]), selectattr: () => list([]),
  }),
  UndefinedValue: table({
    string: () => text(""), safe: () => text(""), strip: () => text(""), capitalize: () => text(""),
    lower: () => text(""), upper: () => text(""), title: () => text(""), trim: () => text(""), replace: () => text(""), join: () => text(""),
    abs: () => undef(), int: () => integer(0), float: () => new FloatValue(0), length: () => integer(0), first: () => undef(), last: () => undef(),
    items: () => list([]), map: () => list([]), reject: () => list([]), rejectattr: () => list([]), list: () => list([]),
    select: () => list([]), selectattr: () => list([]), reverse: () => list([]), sort: () => list([]), unique: () => list([]), dictsort: () => list([]),
  }),
  FunctionValue: new Map(),
};
BUILTINS.TupleValue = BUILTINS.ArrayValue;
BUILTINS.NamespaceValue = BUILTINS.KeywordArgumentsValue = BUILTINS.ObjectValue;
// As filter only: `{{ x.default }}` of an object is its entry.
BUILTINS.ObjectValue.delete("default");
BUILTINS.ObjectValue.delete("d");

function split(s, by, count) {
  const parts = s.split(by);
  return count < 0 || parts.length <= count + 1 ? parts : [...parts.slice(0, count), parts.slice(count).join(by)];
}
function rsplit(s, by, count) {
  const parts = s.split(by), keep = parts.length - count;
  return count < 0 || keep <= 1 ? parts : [parts.slice(0, keep).join(by), ...parts.slice(keep)];
}

function builtin(value, name) {
  usage?.access(value, name);
  const found = BUILTINS[value.type].get(name === "trim" ? "strip" : name);
  if (found !== undefined) return found;
  if ((name === "default" || name === "d") && isObject(value)) return otherwise;
  if (name.startsWith("is ")) {
    const negated = name.startsWith("is not ");
    const test = testOf(name.slice(negated ? 7 : 3));
    return (v, args) => bool(test(v, ...args.positional) !== negated);
  }
  throw new TemplateError("unknown filter '" + name + "' for " + typeName(value));
}

const bound = (value, found) =>
  new FunctionValue((args) => {
    const named = args.at(-1) instanceof KeywordArgumentsValue ? args.at(-1).value : new Map();
    return found(value, new Arguments(args.filter((arg) => !(arg instanceof KeywordArgumentsValue)), named));
  });

// --- the interpreter ---------------------------------------------------------------------------

const { evaluate, evaluateSet } = Interpreter.prototype;
Object.assign(Interpreter.prototype, {
  // The innermost node that fails says where.
  evaluate(node, scope) {
    try {
      return evaluate.call(this, node, scope);
    } catch (error) {
      if (error instanceof Error && error.offset === undefined)
        error.offset = (node.test ?? node.iterable ?? node.assignee ?? node.call ?? node).offset;
      throw error;
    }
  },
  applyFilter(operand, node, scope) {
    if (node.type === "Identifier") return builtin(operand, node.value)(operand, new Arguments([], new Map()));
    const [positional, named] = this.evaluateArguments(node.args, scope);
    return builtin(operand, node.callee.value)(operand, new Arguments(positional, named));
  },
  evaluateTestExpression(node, scope) {
    const operand = this.evaluate(node.operand, scope);
    return bool(testOf(node.test.value)(operand) !== node.negate);
  },
  evaluateMemberExpression(node, scope) {
    const object = this.evaluate(node.object, scope);
    const value = this.memberOf(object, node, scope);
    usage?.used.add(value);
    return value;
  },
  memberOf(object, node, scope) {
    if (node.computed && node.property.type === "SliceExpression") {
      usage?.access(object, "slice");
      const [start, stop, step] = ["start", "stop", "step"].map((part) => {
        const value = node.property[part] === undefined ? undef() : this.evaluate(node.property[part], scope);
        return isUndefined(value) || isNone(value) ? undefined : whole(value);
      });
      if (isText(object)) return text(decoded(slices(encoded(object.value), start, stop, step ?? 1)));
      if (isList(object)) return new object.constructor(slices(object.value, start, stop, step ?? 1));
      throw new TemplateError("a slice of " + typeName(object) + " is not possible");
    }
    const property = node.computed ? this.evaluate(node.property, scope)
      : node.property.type === "IntegerLiteral" ? integer(node.property.value) : text(node.property.value);
    const name = isText(property) ? property.value : undefined;
    usage?.access(object, name === undefined ? "array_access" : "object_access");
    const found = name === undefined || object.isLoop ? undefined : BUILTINS[object.type].get(name);
    if (!node.computed && found !== undefined && !isUndefined(object)) return bound(object, found);
    if (isUndefined(object)) return undef();
    if (isObject(object)) return object.value.get(name ?? printed(property)) ?? (found ? bound(object, found) : undef());
    if (isList(object) || isText(object)) {
      if (isInteger2(property)) {
        if (isList(object)) return object.value.at(property.value) ?? undef();
        const byte = encoded(object.value)[property.value];
        return byte === undefined ? undef() : text(decoded([byte]));
      }
      if (name !== undefined) return found ? bound(object, found) : undef();
      throw new TemplateError("cannot index " + typeName(object) + " with " + typeName(property));
    }
    if (name === undefined) throw new TemplateError("cannot index " + typeName(object) + " with " + typeName(property));
    return found ? bound(object, found) : undef();
  },
  evaluateBinaryExpression(node, scope) {
    const operator = node.operator.value;
    const left = this.evaluate(node.left, scope);
    if (operator === "and") return truth(left) ? this.evaluate(node.right, scope) : left;
    if (operator === "or") return truth(left) ? left : this.evaluate(node.right, scope);
    const right = this.evaluate(node.right, scope);
    if (operator === "==") return bool(equal(left, right));
    if (operator === "!=") return bool(!equal(left, right));
    const empty = (v) => isUndefined(v) || isNone(v);
    if ((operator === "in" || operator === "not in") && isNone(left) && (isList(right) || isObject(right)))
      return bool(member(left, right) === (operator === "in"));
    if (isUndefined(right) && operator === "in") return bool(false);
    if (isUndefined(right) && operator === "not in") return bool(true);
    if (empty(left) || empty(right)) {
      const joins = (operator === "+" || operator === "~") && (isText(left) || isText(right));
      if (!joins) throw new TemplateError("cannot perform " + operator + " on " + typeName(left) + " and " + typeName(right));
      return text((empty(left) ? "" : left.value) + (empty(right) ? "" : right.value));
    }
    if (isNumber(left) && isNumber(right)) {
      const a = left.value, b = right.value;
      const whole2 = isInteger2(left) && isInteger2(right);
      const made = (n) => (whole2 ? integer(n) : new FloatValue(n));
      switch (operator) {
        case "+": return made(a + b);
        case "-": return made(a - b);
        case "*": return made(a * b);
        case "/": return new FloatValue(a / b);
        case "//": return made(Math.floor(a / b));
        case "%": return made(a % b);
        case "**": return made(a ** b);
        case "<": return bool(a < b);
        case ">": return bool(a > b);
        case "<=": return bool(a <= b);
        case ">=": return bool(a >= b);
      }
    }
    const [repeated, times] = isText(left) ? [left, right] : [right, left];
    if (operator === "*" && isText(repeated) && isInteger2(times)) return text(repeated.value.repeat(Math.max(0, times.value)));
    if (operator === "+" && isList(left) && isList(right)) return list([...left.value, ...right.value]);
    if (operator === "in" || operator === "not in") {
      if (isList(right) || isObject(right) || (isText(left) && isText(right))) return bool(member(left, right) === (operator === "in"));
    }
    if ((operator === "+" || operator === "~") && (isText(left) || isText(right))) return text(printed(left) + printed(right));
    throw new TemplateError("unknown operator " + operator + " between " + typeName(left) + " and " + typeName(right));
  },
});

Object.assign(Interpreter.prototype, {
  evaluateIdentifier(node, scope) {
    const value = scope.lookupVariable(node.value);
    usage?.used.add(value);
    return value;
  },
  evaluateFor(node, outer) {
    const scope = new Environment(outer);
    const selects = node.iterable.type === "SelectExpression";
    const iterable = this.evaluate(selects ? node.iterable.lhs : node.iterable, scope);
    usage?.access(iterable, isObject(iterable) ? "object_access" : "array_access");
    if (!isList(iterable) && !isObject(iterable) && !isUndefined(iterable))
      throw new TemplateError("a loop over " + typeName(iterable) + " is not possible");
    const pairs = node.loopvar.type === "TupleLiteral";
    const bind = (item, into) => {
      if (!pairs) return into.setVariable(node.loopvar.value, item);
      if (!isList(item)) throw new TemplateError("cannot unpack " + typeName(item));
      if (item.value.length !== node.loopvar.value.length)
        throw new TemplateError("too " + (item.value.length < node.loopvar.value.length ? "few" : "many") + " items to unpack");
      node.loopvar.value.forEach((name, i) => into.setVariable(name.value, item.value[i]));
    };
    const all = isUndefined(iterable) ? [] : isList(iterable) ? iterable.value
      : pairs ? items(iterable).value : [...iterable.value.keys()].map(text);
    const chosen = all.filter((item) => {
      const own = new Environment(scope);
      bind(item, own);
      return !selects || truth(this.evaluate(node.iterable.test, own));
    });
    let out = "", ran = false;
    for (let i = 0; i < chosen.length; ++i) {
      const loop = new ObjectValue(new Map([
        ["index", integer(i + 1)], ["index0", integer(i)],
        ["revindex", integer(chosen.length - i)], ["revindex0", integer(chosen.length - i - 1)],
        ["first", bool(i === 0)], ["last", bool(i === chosen.length - 1)], ["length", integer(chosen.length)],
        ["previtem", chosen[i - 1] ?? undef()], ["nextitem", chosen[i + 1] ?? undef()],
      ]));
      loop.isLoop = true;
      scope.setVariable("loop", loop);
      bind(chosen[i], scope);
      try {
        // What the statements before a break or continue printed stays.
        for (const statement of node.body) out += this.evaluateBlock([statement], scope).value;
      } catch (error) {
        if (error instanceof ContinueControl) continue;
        if (error instanceof BreakControl) break;
        throw error;
      }
      ran = true;
    }
    return text(ran ? out : out + this.evaluateBlock(node.defaultBlock, outer).value);
  },
  // A keyword argument takes a place, as in llama.cpp: without it, its default is not used.
  bindMacroArguments(name, parameters, special, args, scope) {
    const named = args.at(-1) instanceof KeywordArgumentsValue ? args.at(-1).value : new Map();
    const positional = args.filter((arg) => !(arg instanceof KeywordArgumentsValue));
    const given = positional.length + named.size;
    parameters.forEach((parameter, i) => {
      const { name: own, defaultValue } = getParameterDescriptor(parameter);
      const value = i < given ? named.get(own) ?? positional[i] ?? undef() : undefined;
      if (value === undefined && defaultValue === undefined)
        throw new TemplateError("too few arguments for macro " + name);
      scope.setVariable(own, value ?? this.evaluate(defaultValue, scope));
    });
  },
  evaluateSet(node, scope) {
    if (node.assignee.type !== "MemberExpression") return evaluateSet.call(this, node, scope);
    const value = node.value ? this.evaluate(node.value, scope) : this.evaluateBlock(node.body, scope);
    const object = this.evaluate(node.assignee.object, scope);
    if (node.assignee.computed || !isObject(object)) throw new TemplateError("cannot set a member of " + typeName(object));
    object.value.set(node.assignee.property.value, value);
    return none();
  },
});

// --- rendering ---------------------------------------------------------------------------------

// JSON to values: keeps the order of keys and the difference of 1 and 1.0, which JSON.parse loses.
function valueOf(source) {
  let at = 0;
  const space = () => { while (" \t\r\n".includes(source[at] ?? "x")) ++at; };
  const string = () => {
    const begin = at++;
    while (source[at] !== '"') at += source[at] === "\\" ? 2 : 1;
    return JSON.parse(source.slice(begin, ++at));
  };
  const value = () => {
    space();
    const char = source[at];
    if (char === '"') return text(string());
    if (char === "[") {
      const out = [];
      for (++at, space(); source[at] !== "]"; space()) { out.push(value()); space(); if (source[at] === ",") ++at; }
      ++at;
      return list(out);
    }
    if (char === "{") {
      const out = new Map();
      for (++at, space(); source[at] !== "}"; space()) {
        const key = string();
        space();
        ++at;
        out.set(key, value());
        space();
        if (source[at] === ",") ++at;
      }
      ++at;
      return new ObjectValue(out);
    }
    const word = /^[-+.\w]+/.exec(source.slice(at, at + 400))[0];
    at += word.length;
    if (word === "null") return none();
    if (word === "true" || word === "false") return bool(word === "true");
    const number = Number(word);
    if (/[.eE]/.test(word)) return new FloatValue(number);
    if (Number.isSafeInteger(number)) return integer(number);
    // Ids in the arguments of tools have more digits than a number of JavaScript. llama.cpp has
    // 64 bits, with a sign, and reads longer ones as floats.
    const exact = BigInt(word);
    if (BigInt.asIntN(64, exact) !== exact && BigInt.asUintN(64, exact) !== exact) return new FloatValue(number);
    return Object.assign(integer(number), { digits: String(BigInt.asIntN(64, exact)) });
  };
  return value();
}

// The innermost block without an end.
function unclosed(tokens) {
  const open = [];
  tokens.forEach((token, at) => {
    if (token.type !== "OpenStatement") return;
    const name = tokens[at + 1]?.value;
    const isBlock = ["if", "for", "macro", "call", "filter"].includes(name);
    const end = tokens.findIndex((other, i) => i > at && other.type === "CloseStatement");
    const setsBlock = name === "set" && !tokens.slice(at, end).some((other) => other.type === "Equals");
    if (isBlock || setsBlock) open.push({ name, offset: token.offset });
    else if (name?.startsWith("end")) open.pop();
  });
  return open.at(-1);
}

// The program of a template, or an error with the line.
function parsed(source) {
  let tokens = [];
  try {
    readOffset = 0;
    tokens = tokens_of(source);
    return parse(tracked(tokens));
  } catch (error) {
    if (isLimit(error)) throw error;
    // The parser reads behind the last token.
    const block = error instanceof TypeError ? unclosed(tokens) : undefined;
    const wrong = block ? new TemplateError("{% " + block.name + " %} is not closed with {% end" + block.name + " %}")
      : error instanceof TypeError ? new TemplateError("the template ends within an expression") : error;
    wrong.offset ??= block?.offset ?? readOffset;
    throw wrong;
  }
}

let latest;  // the template of the last request
let clock;  // of the request: strftime(format)

function run(program, variables) {
  const scope = new Environment();
  setupGlobals(scope);
  for (const name of ["raise_exception", "range", "strftime_now"]) scope.variables.delete(name);
  const define = (name, call) => scope.variables.set(name, new FunctionValue((args) => call(args)));
  define("raise_exception", (args) => { throw new TemplateError(args[0] ? printed(args[0]) : ""); });
  define("strftime_now", (args) => text(clock(args[0].value)));
  define("tojson", (args) => bound(args[0], tojson).value(args.slice(1)));
  define("dict", (args) => {
    const named = args.at(-1) instanceof KeywordArgumentsValue ? args.at(-1).value : new Map();
    const [first, second] = args.filter((arg) => !(arg instanceof KeywordArgumentsValue));
    const isPair = (v) => isList(v) && v.value.length === 2;
    if (second !== undefined || !(first === undefined || isObject(first) || (isList(first) && first.value.every(isPair))))
      throw new TemplateError("dict() takes an object or a list of pairs, and keyword arguments");
    const entries = first === undefined ? [] : isObject(first) ? first.value : first.value.map(({ value: [key, v] }) => [printed(key), v]);
    return new ObjectValue(new Map([...entries, ...named]));
  });
  define("range", (args) => {
    const [start, stop, step] = args.length === 1 ? [0, whole(args[0]), 1] : [whole(args[0]), whole(args[1]), args[2] ? whole(args[2]) : 1];
    const out = [];
    if (step === 0) throw new TemplateError("the step of range() cannot be zero");
    for (let i = start; step > 0 ? i < stop : i > stop; i += step) out.push(integer(i));
    return list(out);
  });
  for (const [name, value] of variables) scope.variables.set(name, value);
  return new Interpreter(scope).run(program).value;
}

// What a template can do, found as llama-server does: by rendering conversations and looking at
// what was used.
function abilities(program) {
  const probe = (messages, tools) => {
    const values = valueOf(messages);
    usage = new Usage();
    let passed = true;
    try {
      run(program, new Map([["messages", values], ["tools", valueOf(tools)], ["bos_token", text("")],
                            ["eos_token", text("")], ["add_generation_prompt", bool(true)]]));
    } catch (error) {
      if (isLimit(error)) throw error;
      passed = false;
    }
    const result = { passed, messages: values, usage };
    usage = undefined;
    return result;
  };
  const at = (value, ...path) => path.reduce((v, key) => (typeof key === "number" ? v.value[key] : v.value.get(key)), value);
  const plain = probe('[{"role":"user","content":"content"}]', "[null]");
  const typed = probe('[{"role":"user","content":[]}]', "[null]");
  const asParts = ({ usage, messages }) => {
    const how = usage.accesses.get(at(messages, 0, "content"));
    return how !== undefined && (how.has("selectattr") || how.has("array_access"));
  };
  const system = probe('[{"role":"system","content":"System message"},{"role":"user","content":"User message"}]', "[]");
  const call = (id) => '{"id":"' + id + '","type":"function","function":{"name":"tool1","arguments":{"arg":"value"}}}';
  const calls = (list) => probe('[{"role":"user","content":"User message"},{"role":"assistant","content":"Assistant message","tool_calls":[' + list +
    ']},{"role":"tool","content":"Tool response","tool_call_id":"call00001"},{"role":"assistant","content":"The tool response was \'tool response\'"},{"role":"user","content":"User message"}]',
    '[{"name":"tool","type":"function","function":{"name":"tool1","description":"Tool description","parameters":{"type":"object","properties":{"arg":{"type":"string","description":"Arg description"}},"required":["arg"]}}}]');
  const called = calls(call("call00001"));
  return {
    text: plain.passed,
    parts: asParts(plain) || asParts(typed),
    system: system.usage.used.has(at(system.messages, 0, "content")),
    objectArguments: called.passed && called.usage.used.has(at(called.messages, 1, "tool_calls", 0, "function", "arguments", "arg")),
  };
}

// What stands before and after the thoughts of an answer, if llama-server takes a template for one with
// thoughts. It looks for a mark behind the thoughts of an earlier answer, and compares the prompts
// with and without thinking: one may continue the other, or end with two marks more. Empty: there are
// thoughts, but without such marks.
function thoughtsOf(program, source) {
  if (source.includes("<|channel|>"))  // of gpt-oss
    return ["<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"];
  if (isMinistral(source)) return ["[THINK]", "[/THINK]"];
  const attempt = (messages, thinks, generates) => {
    const variables = [["messages", valueOf("[" + messages + "]")], ["bos_token", text("")], ["eos_token", text("")],
                       ["preserve_reasoning", bool(true)], ["preserve_thinking", bool(true)], ["enable_thinking", bool(thinks)]];
    if (generates) variables.push(["add_generation_prompt", bool(true)]);
    try {
      return run(program, new Map(variables));
    } catch (error) {
      if (isLimit(error)) throw error;
      return undefined;
    }
  };
  const user = '{"role":"user","content":"Question"}', answer = ',{"role":"assistant","reasoning_content":"THOUGHTS","content":';
  const call = '"tool_calls":[{"id":"call00001","type":"function","function":{"name":"tool","arguments":{"arg":"value"}}}]';
  const history = attempt(user + answer + '"ANSWER"}', true, false) ?? "";
  const around = /((?:<[^<>]+>|\[[^[\]]+\])\s*)THOUGHTS(\s*(?:<[^<>]+>|\[[^[\]]+\]).*?)ANSWER/s.exec(history);
  if (around) return [around[1], around[2]];
  for (const prompt of [history, attempt(user + answer + "null," + call + "}", true, false) ?? ""]) {
    const marks = /((?:<[^<>]+>|\[[^[\]]+\])\s*)?THOUGHTS(\s*(?:<[^<>]+>|\[[^[\]]+\])\s*)/.exec(prompt);
    if (marks) return [marks[1] ?? "", marks[2]];
  }
  const off = attempt(user, false, true), on = attempt(user, true, true);
  if (off !== undefined && on !== undefined && off !== on) {
    let begin = 0, end = 0;
    const shorter = Math.min(off.length, on.length);
    while (begin < shorter && off[begin] === on[begin]) ++begin;
    while (end < shorter - begin && off.at(-1 - end) === on.at(-1 - end)) ++end;
    const trimmed = (s) => stripEnd(stripStart(s, STRIPPED), STRIPPED);
    const [removed, added] = [off, on].map((prompt) => trimmed(prompt.slice(begin, prompt.length - end)));
    if (removed === "" && added !== "" && on.endsWith(added)) return [added, added === "<think>" ? "</think>" : ""];
    if (added === "" && removed !== "" && off.endsWith(removed)) {
      const before = /(?:<[^<>]+>|\[[^[\]]+\])\s*$/.exec(off.slice(0, -removed.length));
      return /^(?:<[^<>]+>|\[[^[\]]+\])$/.test(removed) ? [before?.[0] ?? "", removed] : [];
    }
    if (removed !== "" && added !== "") {
      for (const [base, longer] of [[on, off], [off, on]]) {
        const anchor = base.slice(-64), at = longer.lastIndexOf(anchor);
        const marks = at < 0 ? null : /^(<[^<>]+>|\[[^[\]]+\])\s*(<[^<>]+>|\[[^[\]]+\])$/.exec(trimmed(longer.slice(at + anchor.length)));
        if (marks) return [marks[1], marks[2]];
      }
    }
  }
  const granite = "Write your thoughts between <think></think> and write your response between <response></response>";
  const knows = source.includes("List of tools: [") || source.includes(granite) ||  // LFM2, Granite 3.3, old Qwen
    (source.includes("content.split('</think>')") && !source.includes("reasoning_content"));
  return knows ? ["<think>", "</think>"] : undefined;
}

const isMinistral = (source) =>
  ["[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"].every((mark) => source.includes(mark)) && !source.includes("[CALL_ID]");

// The messages as llama-server gives them to the template.
function prepared(messages, can, source) {
  const out = messages.value.map((message) => {
    const given = message.value, made = new Map();
    made.set("role", given.get("role"));
    let content = given.get("content") ?? none();
    if (isList(content)) {
      content = can.parts ? list(content.value.map((part) => new ObjectValue(new Map([["type", part.value.get("type")], ["text", part.value.get("text")]]))))
        : text(content.value.map((part) => part.value.get("text").value).join("\n"));
    } else if (isNone(content)) {
      content = text("");
    }
    if (!can.text && can.parts && isText(content))
      content = list([new ObjectValue(new Map([["type", text("text")], ["text", content]]))]);
    made.set("content", content);
    const copy = (name) => { const value = given.get(name); if (value !== undefined && isText(value) && value.value !== "") made.set(name, value); };
    ["reasoning_content", "name", "tool_call_id"].forEach(copy);
    const toolCalls = given.get("tool_calls");
    if (toolCalls !== undefined && isList(toolCalls) && toolCalls.value.length > 0) {
      made.set("tool_calls", list(toolCalls.value.map((call) => {
        const given = call.value.get("function").value;
        let args = given.get("arguments") ?? text("");
        if (!isText(args)) args = text(json(args, -1, [",", ":"], false, false));
        if (can.objectArguments) args = valueOf(args.value);
        const made = new Map([["type", text("function")], ["function", new ObjectValue(new Map([["name", given.get("name")], ["arguments", args]]))]]);
        const id = call.value.get("id");
        if (id !== undefined && isText(id) && id.value !== "") made.set("id", id);
        return new ObjectValue(made);
      })));
    }
    return new ObjectValue(made);
  });
  if (!source.includes("<|channel|>"))
    for (const message of out) if (message.value.get("role").value === "developer") message.value.set("role", text("system"));
  if (!can.system && out.length > 0 && out[0].value.get("role").value === "system") {
    const first = out.shift();
    if (out.length > 0) {
      const both = [first, out[0]].map((message) => message.value.get("content"));
      if (both.some((content) => !isText(content))) throw new TemplateError("the system message cannot be merged into typed content");
      out[0].value.set("content", text(both[0].value + "\n" + both[1].value));
    }
  }
  // Templates that llama-server knows by their text.
  for (const { value: message } of out) {
    const role = message.get("role").value, thought = message.get("reasoning_content");
    if (isMinistral(source) && (role === "system" || role === "assistant")) {
      const blocks = [];
      const block = (type, content) => blocks.push(new ObjectValue(new Map([["type", text(type)], [type, content]])));
      if (thought !== undefined) block("thinking", thought);
      if (isText(message.get("content"))) block("text", message.get("content"));
      else blocks.push(...message.get("content").value);
      message.set("content", list(blocks));
      message.delete("reasoning_content");
    } else if (source.includes("<|channel|>") && thought !== undefined) {
      message.set("thinking", thought);
    }
  }
  return list(out);
}

const preparedTools = (tools) =>
  list(tools.value.map((tool) => {
    const given = tool.value.get("function").value;
    return new ObjectValue(new Map([["type", text("function")], ["function", new ObjectValue(new Map([
      ["name", given.get("name")], ["description", given.get("description") ?? text("")],
      ["parameters", given.get("parameters") ?? new ObjectValue(new Map())]]))]]));
  }));

// `request`, JSON: template, messages, tools (null: none), arguments (an object of variables), bos,
// eos, adds_bos, adds_eos. `strftime` formats the present time. Returns JSON: {text}, or {error,
// line} with line 0 if the place is unknown.
function render(request, strftime) {
  const given = valueOf(request).value;
  const source = given.get("template").value.replaceAll("\r\n", "\n").replaceAll("\r", "\n").replace(/\n$/, "");
  clock = strftime;
  try {
    if (latest?.source !== source) {
      const program = parsed(source);
      latest = { source, program, can: abilities(program) };
    }
    const { program, can } = latest;
    let messages = given.get("messages"), started;
    const last = messages.value.at(-1);
    if (last?.value.get("role").value === "assistant" && !last.value.has("tool_calls")) {
      started = startedAnswer(last.value);
      messages = list(messages.value.slice(0, -1));
    }
    // Several renderings: only if the template or the started answer needs them.
    const thinks = started !== undefined || source.includes("enable_thinking");
    if (thinks) latest.thoughts ??= { marks: thoughtsOf(program, source) };
    const thoughts = thinks ? latest.thoughts.marks : undefined;
    const variables = new Map([["messages", prepared(messages, can, source)], ["bos_token", given.get("bos")],
                               ["eos_token", given.get("eos")], ["enable_thinking", bool(thoughts !== undefined)]]);
    if (isList(given.get("tools")) && given.get("tools").value.length > 0) variables.set("tools", preparedTools(given.get("tools")));
    variables.set("datetime", text(clock("%b %d %Y")));
    variables.set("date_string", text(clock("%d %b %Y")));
    const args = given.get("arguments").value;
    const effort = args.get("reasoning_effort");
    if (effort !== undefined && isText(effort) && effort.value !== "") variables.set("reasoning_strength", effort);
    const preserves = args.get("preserve_reasoning") ?? bool(true);
    variables.set("preserve_reasoning", preserves);
    if (preserves instanceof BooleanValue) {
      variables.set("preserve_thinking", preserves);
      for (const name of ["clear_thinking", "truncate_history_thinking", "drop_thinking"]) variables.set(name, bool(!preserves.value));
    }
    for (const [name, value] of args) variables.set(name, value);
    variables.set("add_generation_prompt", bool(true));
    let out = continued(program, variables, started, thoughts);
    const bos = given.get("bos").value, eos = given.get("eos").value;
    if (given.get("adds_bos").value && out.startsWith(bos)) out = out.slice(bos.length);
    if (given.get("adds_eos").value && eos !== "" && out.endsWith(eos)) out = out.slice(0, -eos.length);
    if (started !== undefined) out += started.content;
    return JSON.stringify({ text: out });
  } catch (error) {
    if (isLimit(error)) throw error;
    return JSON.stringify({ error: error.message, line: error.offset === undefined ? 0 : lineOf(source, error.offset) });
  }
}

// The last message, if it is of the assistant, is the beginning of the answer.
function startedAnswer(message) {
  const content = message.get("content") ?? none(), thought = message.get("reasoning_content");
  return {
    content: isList(content) ? content.value.map((part) => part.value.get("text").value).join("\n\n") : content.value ?? "",
    thought: thought !== undefined && isText(thought) ? thought.value : "",
  };
}

// llama-server puts what the generation prompt adds behind the rest, and then the thoughts, which
// end before a text. If nothing has been started, it asks for no answer.
function continued(program, variables, started, thoughts) {
  const prompt = run(program, variables);
  if (started === undefined) return prompt;
  const bare = run(program, new Map([...variables].filter(([name]) => name !== "add_generation_prompt")));
  if (started.content === "" && started.thought === "") return bare;
  let same = 0;
  while (same < bare.length && prompt[same] === bare[same]) ++same;
  const out = bare + prompt.slice(same);
  if (thoughts === undefined || thoughts.length === 0) return out;
  const [begin, end] = thoughts;
  const open = stripEnd(begin, STRIPPED), close = stripEnd(stripStart(end, STRIPPED), STRIPPED);
  let before = stripEnd(out, STRIPPED);
  if (close !== "" && before.endsWith(close)) before = stripEnd(before.slice(0, -close.length), STRIPPED);
  return (open !== "" && before.endsWith(open) ? before.slice(0, -open.length) : out) + begin + started.thought +
    (started.content === "" ? "" : end);
}

// A template of our own (the reports): `request` is {template, variables}. The filter e is for HTML.
function fill(request) {
  const given = valueOf(request).value;
  const escaped = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };
  const e = new FunctionValue(([value]) => text(printed(value).replace(/[&<>"']/g, (char) => escaped[char])));
  return run(parsed(given.get("template").value), new Map([...given.get("variables").value, ["e", e]]));
}
