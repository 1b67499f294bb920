"""Small localization files of every format, with the texts that they contain."""

from __future__ import annotations

from pathlib import Path

XLIFF1 = """\
<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="app.html" source-language="en" target-language="de-DE" datatype="html">
    <body>
      <trans-unit id="open" maxwidth="8" size-unit="char">
        <source>Open &amp; <g id="1">save</g> <x id="2"/></source>
        <target state="translated">Öffnen &amp; <g id="1">sichern</g> <x id="2"/></target>
        <note>A button</note>
        <alt-trans><target>Aufmachen</target></alt-trans>
      </trans-unit>
      <trans-unit id="count">
        <source>You have <ph id="a b">%d</ph> files.</source>
        <target>Sie haben Dateien.</target>
      </trans-unit>
      <trans-unit id="two">
        <source>One. Two.</source>
        <seg-source><mrk mtype="seg" mid="0">One.</mrk>
          <mrk mtype="seg" mid="1">Two.</mrk></seg-source>
        <target><mrk mtype="seg" mid="0">Eins.</mrk> <mrk mtype="seg" mid="1">Zwei.</mrk></target>
      </trans-unit>
      <trans-unit id="new"><source>New</source></trans-unit>
      <trans-unit id="brand" translate="no"><source>Tertium</source></trans-unit>
    </body>
  </file>
</xliff>
"""
XLIFF2 = """\
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de"
  xmlns:slr="urn:oasis:names:tc:xliff:sizerestriction:2.0">
 <file id="f1" original="app.html">
  <unit id="u1" slr:sizeRestriction="2,6">
   <notes>
    <note>A button</note>
   </notes>
   <segment state="final">
    <source>Open <pc id="1">it</pc><ph id="2"/></source>
    <target>Öffne <pc id="1">es</pc><ph id="2"/></target>
   </segment>
  </unit>
  <unit id="u2">
   <segment id="s1">
    <source>One.</source>
    <target>Eins.</target>
   </segment>
   <ignorable><source> </source></ignorable>
   <segment id="s2">
    <source>Two<cp hex="001F"/>.</source>
    <target>Zwei<sc id="3"/>.<ec startRef="3"/></target>
   </segment>
  </unit>
 </file>
</xliff>
"""
TMX = """\
<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" datatype="plaintext"/><body>
 <tu tuid="1">
  <tuv xml:lang="en-US"><seg>Open <bpt i="1">&lt;b></bpt>it<ept i="1">&lt;/b></ept></seg></tuv>
  <tuv xml:lang="de"><seg>Öffne <bpt i="1">&lt;b></bpt>es<ept i="1">&lt;/b></ept></seg></tuv>
  <tuv xml:lang="de-AT"><seg>Mach es auf</seg></tuv>
 </tu>
</body></tmx>
"""
PO = r"""# Header comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: pl\n"
"Plural-Forms: nplurals=3; plural=n==1 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2;\n"

#. A button
#: app.c:10
#, fuzzy, max-length:12
#| msgid "Opened"
msgctxt "menu"
msgid "Open"
msgstr "Otwórz \"to\"\n"
"teraz"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d plik"
msgstr[1] "%d pliki"
msgstr[2] "%d plików"

msgid "New"
msgstr ""

#~ msgid "Old"
#~ msgstr "Stary"
"""
ANDROID = """\
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
  <string name="brand" translatable="false">Tertium</string>
  <string name="hello">Hello <xliff:g id="name">%1$s</xliff:g>, it\\'s <b>you</b>!</string>
  <string-array name="days"><item>Monday</item><item>Tuesday</item></string-array>
  <plurals name="files">
    <item quantity="one">%d file</item>
    <item quantity="other">%d files</item>
  </plurals>
</resources>
"""
STRINGS = '/* A button */\n"menu.open" = "Open \\"it\\"\\n";\n// two\n"caf\\U00e9" = "x";\n'
PROPERTIES = "# A button\nmenu.open = Open \\\n    it\nnot\\ split: caf\\u00e9\nempty=\n"
FLUENT = """\
# A button
open = Open { $name }
    .title = Title
files = { $n ->
    [one] one file
   *[other] { $n } files
  } of { -brand }
-brand = Tertium
"""
I18NEXT = (
    '{"menu": {"open": "Open"}, "file_one": "file", "file_other": "files", "n": 3, "a": ["x"]}'
)
ARB = '{"@@locale": "de", "open": "Öffnen", "@open": {"description": "A button"}}'
RAILS = "de:\n  no: Nein\n  files:\n    one: Datei\n    other: '%{count} Dateien'\n"
XCSTRINGS = """\
{"sourceLanguage": "en", "version": "1.0", "strings": {
 "Open": {"comment": "A button", "localizations": {
   "de": {"stringUnit": {"state": "translated", "value": "Öffnen"}}}},
 "%lld files": {"localizations": {
   "en": {"variations": {"plural": {"one": {"stringUnit": {"state": "new", "value": "one file"}},
     "other": {"stringUnit": {"state": "new", "value": "%lld files"}}}}},
   "de": {"variations": {"plural": {
     "other": {"stringUnit": {"state": "new", "value": "viele"}}}}}}},
 "Tertium": {"shouldTranslate": false}}}
"""
STRINGSDICT = """\
<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict><key>files</key><dict>
<key>NSStringLocalizedFormatKey</key><string>%#@n@</string>
<key>n</key><dict><key>NSStringFormatSpecTypeKey</key><string>NSStringPluralRuleType</string>
<key>one</key><string>a file</string><key>other</key><string>%d files</string></dict>
</dict></dict></plist>
"""
SRT = "1\n00:00:01,000 --> 00:00:02,000\nHello\nthere\n\n2\n00:00:03,000 --> 00:00:04,000\nBye\n"
VTT = (
    "WEBVTT\nKind: captions\n\nNOTE none\n\n"
    "intro\n00:01.000 --> 00:02.000 align:left\nHello\nthere\n\n"
    "00:03.000 --> 00:04.000\nBye\n"
)


def write(folder: Path, name: str, content: str, encoding: str = "utf-8") -> str:
    """Write a file and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode(encoding))
    return str(path)
