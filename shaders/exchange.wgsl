<% for (const [index, { stores, place: at }] of it.rounds.entries()) { -%>
  {
<%= stores %>
    workgroupBarrier();
<% for (let place = 0; place < it.positions; place += it.threads) { -%>
<% if (place + it.threads <= it.positions) { -%>
    {
<% } else { -%>
    if (t < <%= it.positions - place %>u) {
<% } -%>
      let position = t + <%= place %>u;
<%= at %>
<%= it.results %>
    }
<% } -%>
<% if (index + 1 < it.rounds.length) { -%>
    workgroupBarrier();
<% } -%>
  }
<% } -%>
