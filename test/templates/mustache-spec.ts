/** A case of the public Mustache specification: HTML escaping aside, since nothing here is HTML. */
export interface SpecCase {
  name: string
  template: string
  data: Record<string, unknown>
  partials?: Record<string, string>
  expected: string
}

const it = (
  name: string,
  template: string,
  data: Record<string, unknown>,
  expected: string,
  partials?: Record<string, string>,
): SpecCase =>
  partials === undefined ? { name, template, data, expected } : { name, template, data, expected, partials }

const comments: SpecCase[] = [
  it('comments: inline', '12345{{! Comment Block! }}67890', {}, '1234567890'),
  it('comments: multiline', '12345{{!\n  This is a\n  multi-line comment...\n}}67890\n', {}, '1234567890\n'),
  it('comments: standalone', 'Begin.\n{{! Comment Block! }}\nEnd.\n', {}, 'Begin.\nEnd.\n'),
  it('comments: indented standalone', 'Begin.\n  {{! Indented Comment Block! }}\nEnd.\n', {}, 'Begin.\nEnd.\n'),
  it('comments: standalone line endings', '|\r\n{{! Standalone Comment }}\r\n|', {}, '|\r\n|'),
  it('comments: standalone without previous line', "  {{! I'm Still Standalone }}\n!", {}, '!'),
  it('comments: standalone without newline', "!\n  {{! I'm Still Standalone }}", {}, '!\n'),
  it('comments: multiline standalone', "Begin.\n{{!\nSomething's going on here...\n}}\nEnd.\n", {}, 'Begin.\nEnd.\n'),
  it(
    'comments: indented multiline standalone',
    "Begin.\n  {{!\n    Something's going on here...\n  }}\nEnd.\n",
    {},
    'Begin.\nEnd.\n',
  ),
  it('comments: indented inline', '  12 {{! 34 }}\n', {}, '  12 \n'),
  it('comments: surrounding whitespace', '12345 {{! Comment Block! }} 67890', {}, '12345  67890'),
  it(
    'comments: variable name collision',
    'comments never show: >{{! comment }}<',
    { '! comment': 1, '! comment ': 2, '!comment': 3, comment: 4 },
    'comments never show: ><',
  ),
]

const delimiters: SpecCase[] = [
  it('delimiters: pair behaviour', '{{=<% %>=}}(<%text%>)', { text: 'Hey!' }, '(Hey!)'),
  it('delimiters: special characters', '({{=[ ]=}}[text])', { text: 'It worked!' }, '(It worked!)'),
  it(
    'delimiters: sections',
    '[\n{{#section}}\n  {{data}}\n  |data|\n{{/section}}\n\n{{= | | =}}\n|#section|\n  {{data}}\n  |data|\n|/section|\n]\n',
    { section: true, data: 'I got interpolated.' },
    '[\n  I got interpolated.\n  |data|\n\n  {{data}}\n  I got interpolated.\n]\n',
  ),
  it(
    'delimiters: inverted sections',
    '[\n{{^section}}\n  {{data}}\n  |data|\n{{/section}}\n\n{{= | | =}}\n|^section|\n  {{data}}\n  |data|\n|/section|\n]\n',
    { section: false, data: 'I got interpolated.' },
    '[\n  I got interpolated.\n  |data|\n\n  {{data}}\n  I got interpolated.\n]\n',
  ),
  it(
    'delimiters: partial inheritance',
    '[ {{>include}} ]\n{{= | | =}}\n[ |>include| ]\n',
    { value: 'yes' },
    '[ .yes. ]\n[ .yes. ]\n',
    { include: '.{{value}}.' },
  ),
  it(
    'delimiters: post-partial behaviour',
    '[ {{>include}} ]\n[ .{{value}}.  .|value|. ]\n',
    { value: 'yes' },
    '[ .yes.  .yes. ]\n[ .yes.  .|value|. ]\n',
    {
      include: '.{{value}}. {{= | | =}} .|value|.',
    },
  ),
  it('delimiters: surrounding whitespace', '| {{=@ @=}} |', {}, '|  |'),
  it('delimiters: outlying whitespace (inline)', ' | {{=@ @=}}\n', {}, ' | \n'),
  it('delimiters: standalone tag', 'Begin.\n{{=@ @=}}\nEnd.\n', {}, 'Begin.\nEnd.\n'),
  it('delimiters: indented standalone tag', 'Begin.\n  {{=@ @=}}\nEnd.\n', {}, 'Begin.\nEnd.\n'),
  it('delimiters: standalone line endings', '|\r\n{{= @ @ =}}\r\n|', {}, '|\r\n|'),
  it('delimiters: standalone without previous line', '  {{=@ @=}}\n=', {}, '='),
  it('delimiters: standalone without newline', '=\n  {{=@ @=}}', {}, '=\n'),
  it('delimiters: pair with padding', '|{{= @   @ =}}|', {}, '||'),
]

const ABC = { a: { b: { c: { d: { e: { name: 'Phil' } } } } } }
const interpolation: SpecCase[] = [
  it('interpolation: no interpolation', 'Hello from {Mustache}!\n', {}, 'Hello from {Mustache}!\n'),
  it('interpolation: basic', 'Hello, {{subject}}!\n', { subject: 'world' }, 'Hello, world!\n'),
  it(
    'interpolation: no re-interpolation',
    '{{template}}: {{planet}}',
    { template: '{{planet}}', planet: 'Earth' },
    '{{planet}}: Earth',
  ),
  it('interpolation: no HTML escaping', '{{forbidden}}', { forbidden: '& " < >' }, '& " < >'),
  it('interpolation: triple mustache', '{{{forbidden}}}', { forbidden: '& " < >' }, '& " < >'),
  it('interpolation: ampersand', '{{&forbidden}}', { forbidden: '& " < >' }, '& " < >'),
  it('interpolation: basic integer', '"{{mph}} miles an hour!"', { mph: 85 }, '"85 miles an hour!"'),
  it('interpolation: triple mustache integer', '"{{{mph}}} miles an hour!"', { mph: 85 }, '"85 miles an hour!"'),
  it('interpolation: ampersand integer', '"{{&mph}} miles an hour!"', { mph: 85 }, '"85 miles an hour!"'),
  it('interpolation: basic decimal', '"{{power}} jiggawatts!"', { power: 1.21 }, '"1.21 jiggawatts!"'),
  it('interpolation: triple mustache decimal', '"{{{power}}} jiggawatts!"', { power: 1.21 }, '"1.21 jiggawatts!"'),
  it('interpolation: ampersand decimal', '"{{&power}} jiggawatts!"', { power: 1.21 }, '"1.21 jiggawatts!"'),
  it('interpolation: basic null', 'I ({{cannot}}) be seen!', { cannot: null }, 'I () be seen!'),
  it('interpolation: triple mustache null', 'I ({{{cannot}}}) be seen!', { cannot: null }, 'I () be seen!'),
  it('interpolation: ampersand null', 'I ({{&cannot}}) be seen!', { cannot: null }, 'I () be seen!'),
  it('interpolation: basic context miss', 'I ({{cannot}}) be seen!', {}, 'I () be seen!'),
  it('interpolation: triple mustache context miss', 'I ({{{cannot}}}) be seen!', {}, 'I () be seen!'),
  it('interpolation: ampersand context miss', 'I ({{&cannot}}) be seen!', {}, 'I () be seen!'),
  it(
    'dotted names: basic',
    '"{{person.name}}" == "{{#person}}{{name}}{{/person}}"',
    { person: { name: 'Joe' } },
    '"Joe" == "Joe"',
  ),
  it(
    'dotted names: triple mustache',
    '"{{{person.name}}}" == "{{#person}}{{{name}}}{{/person}}"',
    { person: { name: 'Joe' } },
    '"Joe" == "Joe"',
  ),
  it(
    'dotted names: ampersand',
    '"{{&person.name}}" == "{{#person}}{{&name}}{{/person}}"',
    { person: { name: 'Joe' } },
    '"Joe" == "Joe"',
  ),
  it('dotted names: arbitrary depth', '"{{a.b.c.d.e.name}}" == "Phil"', ABC, '"Phil" == "Phil"'),
  it('dotted names: broken chains', '"{{a.b.c}}" == ""', { a: {} }, '"" == ""'),
  it(
    'dotted names: broken chain resolution',
    '"{{a.b.c.name}}" == ""',
    { a: { b: {} }, c: { name: 'Jim' } },
    '"" == ""',
  ),
  it(
    'dotted names: initial resolution',
    '"{{#a}}{{b.c.d.e.name}}{{/a}}" == "Phil"',
    { ...ABC, b: { c: { d: { e: { name: 'Wrong' } } } } },
    '"Phil" == "Phil"',
  ),
  it('dotted names: context precedence', '{{#a}}{{b.c}}{{/a}}', { a: { b: {} }, b: { c: 'ERROR' } }, ''),
  it('dotted names: never single keys', '{{a.b}}', { 'a.b': 'c' }, ''),
  it('dotted names: no masking', '{{a.b}}', { 'a.b': 'c', a: { b: 'd' } }, 'd'),
  it('implicit iterators: basic', 'Hello, {{#it}}{{.}}{{/it}}!\n', { it: 'world' }, 'Hello, world!\n'),
  it('implicit iterators: basic integer', '{{#it}}"{{.}} miles an hour!"{{/it}}', { it: 85 }, '"85 miles an hour!"'),
  it('interpolation: surrounding whitespace', '| {{string}} |', { string: '---' }, '| --- |'),
  it('interpolation: triple mustache surrounding whitespace', '| {{{string}}} |', { string: '---' }, '| --- |'),
  it('interpolation: ampersand surrounding whitespace', '| {{&string}} |', { string: '---' }, '| --- |'),
  it('interpolation: standalone', '  {{string}}\n', { string: '---' }, '  ---\n'),
  it('interpolation: triple mustache standalone', '  {{{string}}}\n', { string: '---' }, '  ---\n'),
  it('interpolation: ampersand standalone', '  {{&string}}\n', { string: '---' }, '  ---\n'),
  it('interpolation: padding', '|{{ string }}|', { string: '---' }, '|---|'),
  it('interpolation: triple mustache padding', '|{{{ string }}}|', { string: '---' }, '|---|'),
  it('interpolation: ampersand padding', '|{{& string }}|', { string: '---' }, '|---|'),
]

const inverted: SpecCase[] = [
  it(
    'inverted: falsey',
    '"{{^boolean}}This should be rendered.{{/boolean}}"',
    { boolean: false },
    '"This should be rendered."',
  ),
  it('inverted: truthy', '"{{^boolean}}This should not be rendered.{{/boolean}}"', { boolean: true }, '""'),
  it(
    'inverted: null is falsey',
    '"{{^null}}This should be rendered.{{/null}}"',
    { null: null },
    '"This should be rendered."',
  ),
  it('inverted: context', '"{{^context}}Hi {{name}}.{{/context}}"', { context: { name: 'Joe' } }, '""'),
  it('inverted: list', '"{{^list}}{{n}}{{/list}}"', { list: [{ n: 1 }, { n: 2 }, { n: 3 }] }, '""'),
  it('inverted: empty list', '"{{^list}}Yay lists!{{/list}}"', { list: [] }, '"Yay lists!"'),
  it(
    'inverted: doubled',
    '{{^bool}}\n* first\n{{/bool}}\n* {{two}}\n{{^bool}}\n* third\n{{/bool}}\n',
    { bool: false, two: 'second' },
    '* first\n* second\n* third\n',
  ),
  it('inverted: nested falsey', '| A {{^bool}}B {{^bool}}C{{/bool}} D{{/bool}} E |', { bool: false }, '| A B C D E |'),
  it('inverted: nested truthy', '| A {{^bool}}B {{^bool}}C{{/bool}} D{{/bool}} E |', { bool: true }, '| A  E |'),
  it(
    'inverted: context misses',
    '[{{^missing}}Cannot find key missing!{{/missing}}]',
    {},
    '[Cannot find key missing!]',
  ),
  it('inverted: dotted truthy', '"{{^a.b.c}}Not Here{{/a.b.c}}" == ""', { a: { b: { c: true } } }, '"" == ""'),
  it('inverted: dotted falsey', '"{{^a.b.c}}Not Here{{/a.b.c}}"', { a: { b: { c: false } } }, '"Not Here"'),
  it('inverted: dotted broken chains', '"{{^a.b.c}}Not Here{{/a.b.c}}"', { a: {} }, '"Not Here"'),
  it('inverted: surrounding whitespace', ' | {{^boolean}}\t|\t{{/boolean}} | \n', { boolean: false }, ' | \t|\t | \n'),
  it(
    'inverted: internal whitespace',
    ' | {{^boolean}} {{! Important Whitespace }}\n {{/boolean}} | \n',
    { boolean: false },
    ' |  \n  | \n',
  ),
  it(
    'inverted: indented inline',
    ' {{^boolean}}NO{{/boolean}}\n {{^boolean}}WAY{{/boolean}}\n',
    { boolean: false },
    ' NO\n WAY\n',
  ),
  it(
    'inverted: standalone lines',
    '| This Is\n{{^boolean}}\n|\n{{/boolean}}\n| A Line\n',
    { boolean: false },
    '| This Is\n|\n| A Line\n',
  ),
  it(
    'inverted: standalone indented lines',
    '| This Is\n  {{^boolean}}\n|\n  {{/boolean}}\n| A Line\n',
    { boolean: false },
    '| This Is\n|\n| A Line\n',
  ),
  it('inverted: standalone line endings', '|\r\n{{^boolean}}\r\n{{/boolean}}\r\n|', { boolean: false }, '|\r\n|'),
  it('inverted: standalone without previous line', '  {{^boolean}}\n^{{/boolean}}\n/', { boolean: false }, '^\n/'),
  it('inverted: standalone without newline', '^{{^boolean}}\n/\n  {{/boolean}}', { boolean: false }, '^\n/\n'),
  it('inverted: padding', '|{{^ boolean }}={{/ boolean }}|', { boolean: false }, '|=|'),
]

const partials: SpecCase[] = [
  it('partials: basic', '"{{>text}}"', {}, '"from partial"', { text: 'from partial' }),
  it('partials: context', '"{{>partial}}"', { text: 'content' }, '"*content*"', { partial: '*{{text}}*' }),
  it('partials: recursion', '{{>node}}', { content: 'X', nodes: [{ content: 'Y', nodes: [] }] }, 'X<Y<>>', {
    node: '{{content}}<{{#nodes}}{{>node}}{{/nodes}}>',
  }),
  it('partials: nested', '{{>outer}}', { a: 'hello', b: 'world' }, '*hello world!*', {
    outer: '*{{a}} {{>inner}}*',
    inner: '{{b}}!',
  }),
  it('partials: surrounding whitespace', '| {{>partial}} |', {}, '| \t|\t |', { partial: '\t|\t' }),
  it('partials: inline indentation', '  {{data}}  {{> partial}}\n', { data: '|' }, '  |  >\n>\n', { partial: '>\n>' }),
  it('partials: inline indentation before text', '  {{> partial}} |\n', {}, '  >\n> |\n', { partial: '>\n>' }),
  it('partials: standalone line endings', '|\r\n{{>partial}}\r\n|', {}, '|\r\n>|', { partial: '>' }),
  it('partials: standalone without previous line', '  {{>partial}}\n>', {}, '  >\n  >>', { partial: '>\n>' }),
  it('partials: standalone without newline', '>\n  {{>partial}}', {}, '>\n  >\n  >', { partial: '>\n>' }),
  it('partials: standalone indentation', '\\\n {{>partial}}\n/\n', { content: '<\n->' }, '\\\n |\n <\n->\n |\n/\n', {
    partial: '|\n{{{content}}}\n|\n',
  }),
  it('partials: indentation adds up', ' {{>outer}}\n', { x: 'a\nb' }, ' 1\n   2 a\nb\n', {
    outer: '1\n  {{>inner}}\n',
    inner: '2 {{x}}\n',
  }),
  it('partials: padding', '|{{> partial }}|', { boolean: true }, '|[]|', { partial: '[]' }),
]

const sections: SpecCase[] = [
  it(
    'sections: truthy',
    '"{{#boolean}}This should be rendered.{{/boolean}}"',
    { boolean: true },
    '"This should be rendered."',
  ),
  it('sections: falsey', '"{{#boolean}}This should not be rendered.{{/boolean}}"', { boolean: false }, '""'),
  it('sections: null is falsey', '"{{#null}}This should not be rendered.{{/null}}"', { null: null }, '""'),
  it('sections: context', '"{{#context}}Hi {{name}}.{{/context}}"', { context: { name: 'Joe' } }, '"Hi Joe."'),
  it(
    'sections: parent contexts',
    '"{{#sec}}{{a}}, {{b}}, {{c.d}}{{/sec}}"',
    { a: 'foo', b: 'wrong', sec: { b: 'bar' }, c: { d: 'baz' } },
    '"foo, bar, baz"',
  ),
  it('sections: variable test', '"{{#foo}}{{.}} is {{foo}}{{/foo}}"', { foo: 'bar' }, '"bar is bar"'),
  it(
    'sections: list contexts',
    '{{#tops}}{{#middles}}{{tname.lower}}{{mname}}.{{#bottoms}}{{tname.upper}}{{mname}}{{bname}}.{{/bottoms}}{{/middles}}{{/tops}}',
    {
      tops: [
        { tname: { upper: 'A', lower: 'a' }, middles: [{ mname: '1', bottoms: [{ bname: 'x' }, { bname: 'y' }] }] },
      ],
    },
    'a1.A1x.A1y.',
  ),
  it(
    'sections: deeply nested contexts',
    '{{#a}}{{one}}{{#b}}{{one}}{{two}}{{one}}{{#c.d}}{{one}}{{two}}{{three}}{{two}}{{one}}{{/c.d}}{{/b}}{{/a}}',
    { a: { one: 1 }, b: { two: 2 }, c: { d: { three: 3 } } },
    '112112321',
  ),
  it('sections: list', '"{{#list}}{{item}}{{/list}}"', { list: [{ item: 1 }, { item: 2 }, { item: 3 }] }, '"123"'),
  it('sections: empty list', '"{{#list}}Yay lists!{{/list}}"', { list: [] }, '""'),
  it(
    'sections: doubled',
    '{{#bool}}\n* first\n{{/bool}}\n* {{two}}\n{{#bool}}\n* third\n{{/bool}}\n',
    { bool: true, two: 'second' },
    '* first\n* second\n* third\n',
  ),
  it('sections: nested truthy', '| A {{#bool}}B {{#bool}}C{{/bool}} D{{/bool}} E |', { bool: true }, '| A B C D E |'),
  it('sections: nested falsey', '| A {{#bool}}B {{#bool}}C{{/bool}} D{{/bool}} E |', { bool: false }, '| A  E |'),
  it('sections: context misses', '[{{#missing}}Found key missing!{{/missing}}]', {}, '[]'),
  it(
    'sections: implicit iterator, string',
    '"{{#list}}({{.}}){{/list}}"',
    { list: ['a', 'b', 'c', 'd', 'e'] },
    '"(a)(b)(c)(d)(e)"',
  ),
  it(
    'sections: implicit iterator, integer',
    '"{{#list}}({{.}}){{/list}}"',
    { list: [1, 2, 3, 4, 5] },
    '"(1)(2)(3)(4)(5)"',
  ),
  it(
    'sections: implicit iterator, decimal',
    '"{{#list}}({{.}}){{/list}}"',
    { list: [1.1, 2.2, 3.3, 4.4, 5.5] },
    '"(1.1)(2.2)(3.3)(4.4)(5.5)"',
  ),
  it(
    'sections: implicit iterator, array',
    '"{{#list}}({{#.}}{{.}}{{/.}}){{/list}}"',
    {
      list: [
        [1, 2, 3],
        ['a', 'b', 'c'],
      ],
    },
    '"(123)(abc)"',
  ),
  it(
    'sections: implicit iterator, triple mustache',
    '"{{#list}}({{{.}}}){{/list}}"',
    { list: ['&', '"', '<', '>'] },
    '"(&)(")(<)(>)"',
  ),
  it(
    'sections: implicit iterator, ampersand',
    '"{{#list}}({{&.}}){{/list}}"',
    { list: ['&', '"', '<', '>'] },
    '"(&)(")(<)(>)"',
  ),
  it(
    'sections: implicit iterator, inner objects',
    '{{#list}}{{#.}}{{value}}{{/.}}{{/list}}',
    { list: [{ value: 'a' }, { value: 'b' }] },
    'ab',
  ),
  it('sections: dotted truthy', '"{{#a.b.c}}Here{{/a.b.c}}"', { a: { b: { c: true } } }, '"Here"'),
  it('sections: dotted falsey', '"{{#a.b.c}}Here{{/a.b.c}}"', { a: { b: { c: false } } }, '""'),
  it('sections: dotted broken chains', '"{{#a.b.c}}Here{{/a.b.c}}"', { a: {} }, '""'),
  it('sections: surrounding whitespace', ' | {{#boolean}}\t|\t{{/boolean}} | \n', { boolean: true }, ' | \t|\t | \n'),
  it(
    'sections: internal whitespace',
    ' | {{#boolean}} {{! Important Whitespace }}\n {{/boolean}} | \n',
    { boolean: true },
    ' |  \n  | \n',
  ),
  it(
    'sections: indented inline',
    ' {{#boolean}}YES{{/boolean}}\n {{#boolean}}GOOD{{/boolean}}\n',
    { boolean: true },
    ' YES\n GOOD\n',
  ),
  it(
    'sections: standalone lines',
    '| This Is\n{{#boolean}}\n|\n{{/boolean}}\n| A Line\n',
    { boolean: true },
    '| This Is\n|\n| A Line\n',
  ),
  it(
    'sections: indented standalone lines',
    '| This Is\n  {{#boolean}}\n|\n  {{/boolean}}\n| A Line\n',
    { boolean: true },
    '| This Is\n|\n| A Line\n',
  ),
  it('sections: standalone line endings', '|\r\n{{#boolean}}\r\n{{/boolean}}\r\n|', { boolean: true }, '|\r\n|'),
  it('sections: standalone without previous line', '  {{#boolean}}\n#{{/boolean}}\n/', { boolean: true }, '#\n/'),
  it('sections: standalone without newline', '#{{#boolean}}\n/\n  {{/boolean}}', { boolean: true }, '#\n/\n'),
  it('sections: padding', '|{{# boolean }}={{/ boolean }}|', { boolean: true }, '|=|'),
]

/** All core modules; lambdas and inheritance are optional there and absent here. */
export const SPEC_CASES: SpecCase[] = [
  ...comments,
  ...delimiters,
  ...interpolation,
  ...inverted,
  ...partials,
  ...sections,
]
