# A button
open = Open { $name }
    .title = Title
files = { $n ->
    [one] one file
   *[other] { $n } files
  } of { -brand }
-brand = Tertium
