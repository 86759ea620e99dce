// <%= it.name %>: int8 as [group][depth / 4][places], four of the depth a word, padded with zeros.
<%= it.declarations %>

<%= it.begin %>
  let place = i % <%= it.threads %> * <%= it.width %>u;
  let first = (i / <%= it.threads %>) % <%= it.paddedWords %> * 4u;
  let base = i / (<%= it.threads %> * <%= it.paddedWords %>) * <%= it.batchStride %>;
<% if (it.width === 4) { -%>
  var word = vec4u();
  // A word holds four places of one depth: its bytes go to four words.
<% } else { -%>
  var word = 0u;
<% } -%>
<% for (let b = 0; b < 4; b++) { -%>
  {
    let d = first + <%= b %>u;
    if (place < <%= it.places %> && d < <%= it.depth %>) {
      let byte = base + <%= it.byte %>;
<% if (it.width === 4) { -%>
      word |= ((vec4u(<%= it.load %>) >> vec4u(0u, 8u, 16u, 24u)) & vec4u(255u)) << vec4u(<%= 8 * b %>u);
<% } else { -%>
      word |= ((<%= it.load %> >> (byte % 4u * 8u)) & 255u) << <%= 8 * b %>u;
<% } -%>
    }
  }
<% } -%>
  <%= it.store %>
}
