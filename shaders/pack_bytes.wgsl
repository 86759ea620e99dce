// <%= it.name %>: int8 as [group][panels][places][panel], four of the depth a word, padded with zeros.
<%= it.declarations %>

<%= it.begin %>
<%= it.digits %>
  let place = first_place * <%= it.wide %>u;
  let first = (panel * <%= it.panel %> + run * <%= it.deep %>u) * 4u;
  let base = group * <%= it.batchStride %>;
<% if (it.run === 16) { -%>
  var words = vec4u();
  if (place < <%= it.places %> && first < <%= it.depth %>) {
    let d = first;
    words = <%= it.load(`(base + ${it.byte}) / 16u`) %>;
  }
  <%= it.store(0, "words") %>
<% } else { -%>
<% if (it.wide === 4) { -%>
  // A word holds four places of one depth: its bytes go to four words.
<% } -%>
<% for (let w = 0; w < it.deep; w++) { -%>
  var word<%= w %> = <%= it.wide === 4 ? "vec4u()" : "0u" %>;
<% for (let b = 0; b < 4; b += it.run) { -%>
  {
    let d = first + <%= 4 * w + b %>u;
    if (place < <%= it.places %> && d < <%= it.depth %>) {
      let byte = base + <%= it.byte %>;
<% if (it.wide === 4) { -%>
      word<%= w %> |= ((vec4u(<%= it.load("byte / 4u") %>) >> vec4u(0u, 8u, 16u, 24u)) & vec4u(255u)) << vec4u(<%= 8 * b %>u);
<% } else if (it.run === 4) { -%>
      word<%= w %> = <%= it.load("byte / 4u") %>;
<% } else { -%>
      word<%= w %> |= ((<%= it.load("byte / 4u") %> >> (byte % 4u * 8u)) & 255u) << <%= 8 * b %>u;
<% } -%>
    }
  }
<% } -%>
<% } -%>
<% if (it.deep === 1) { -%>
  <%= it.store(0, "word0") %>
<% } else if (it.wide === 1) { -%>
  <%= it.store(0, "vec4u(word0, word1, word2, word3)") %>
<% } else { -%>
<% for (let p = 0; p < 4; p++) { -%>
  <%= it.store(p, `vec4u(word0[${p}], word1[${p}], word2[${p}], word3[${p}])`) %>
<% } -%>
<% } -%>
<% } -%>
}
