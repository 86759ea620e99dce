// <%= it.name %>: the marks of a result's place: its image's largest value, and what is small and large of all that its taps meet.
<%= it.declarations %>

<%= it.begin %>
<%= it.coordinates %>
  var few = 0u;
  var said = 0u;
  var many = 0u;
  var met = 0u;
  for (var term = 0u; term < <%= it.taps %>; term++) {
<%= it.term %>
    if (inside) {
      met++;
      let at = <%= it.firstCount %> + <%= it.place %>;
      let small = <%= it.load('at') %>;
      few += small & ~3u;
      said |= small & 3u;
      many += <%= it.load(`at + ${it.kind}`) %>;
    }
  }
  let to = <%= it.first %> + i;
  // Of zeros alone nothing is lost.
  <%= it.store('to', `select(0u, ${it.largest}, (said & 2u) != 0u)`) %>
  <%= it.store(`to + ${it.words}`, 'few | said') %>
  <%= it.store(`to + 2u * ${it.words}`, 'many') %>
  <%= it.store(`to + 3u * ${it.words}`, it.drift) %>
}
