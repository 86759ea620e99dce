// <%= it.name %>: images in window order, as [images][group][outer place][width][outer tap][channel].
<%= it.declarations %>

<%= it.main %>
  let first = (workgroup.x + workgroup.y * grid.x) * <%= 256 * it.dealt %>u + t;
  // All loads before the first store, so that they travel together.
<% for (let i = 0; i < it.dealt; i++) { -%>
  var loaded<%= i %>: <%= it.type %>;
  {
    var rest = first + <%= 256 * i %>u;
    let r = rest % <%= it.channels %>; rest /= <%= it.channels %>;
    let u = rest % <%= it.outerTaps %>; rest /= <%= it.outerTaps %>;
    let k = rest % <%= it.width %>; rest /= <%= it.width %>;
    let m = rest % <%= it.outerPlaces %>; rest /= <%= it.outerPlaces %>;
    let group = rest % <%= it.groups %>;
    let image = rest / <%= it.groups %>;
<%= it.source %>
    loaded<%= i %> = value;
  }
<% } -%>
<% for (let i = 0; i < it.dealt; i++) { -%>
  if (first + <%= 256 * i %>u < <%= it.count %>) {
    <%= it.store(`first + ${256 * i}u`, `loaded${i}`) %>
  }
<% } -%>
}
