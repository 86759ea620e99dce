<% for (let first = 0; first < it.sums.length; first += it.round) { -%>
  {
<% for (let v = 0; v < it.round; v++) { -%>
    {
      let at = <%= v * it.perSlice %>u + u;
      <%= it.memory %>[slice][at / <%= it.width %>u][at % <%= it.width %>u] = <%= it.sums[first + v] %>;
    }
<% } -%>
    workgroupBarrier();
<% for (let place = 0; place < it.positions; place += it.threads) { -%>
<% if (place + it.threads <= it.positions) { -%>
    {
<% } else { -%>
    if (t < <%= it.positions - place %>u) {
<% } -%>
      let position = t + <%= place %>u;
      let member = position % <%= it.perSlice %>u;
      let sum = <%= first %>u + position / <%= it.perSlice %>u;
<%= it.places %>
      let of_row = sum / <%= it.fragments %>u;
      let row = first_row + (of_y + (of_row / 4u) * <%= it.threadsY %>u) * 4u + of_row % 4u;
      let column = first_column + (of_x + (sum % <%= it.fragments %>u) * <%= it.threadsX %>u) * 4u;
      let line = position / <%= it.width %>u;
      let vector = position % <%= it.width %>u;
<%= it.products %>
<%= it.stored %>
    }
<% } -%>
<% if (first + it.round < it.sums.length) { -%>
    workgroupBarrier();
<% } -%>
  }
<% } -%>
